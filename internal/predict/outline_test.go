package predict

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/models"
	"memorymark/internal/models/modelstest"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// What an outline says is needed is below what is taken, and not far below.
func TestOutline(t *testing.T) {
	const far = 0.7 // a part may peak elsewhere with a larger batch
	card := workloadtest.Card(t, "a100-80gb")
	for name, keys := range map[string]string{
		"plain":        `"model": "gpt2", "sequence": 256`,
		"autocast":     `"model": "bert", "precision": "amp-bf16"`,
		"outputs kept": `"model": "gpt2", "loop": {"outputs": "kept"}, "precision": "amp-bf16"`,
		"8-bit":        `"model": "smollm2-135m", "optimizer": "adamw-8bit", "checkpointing": true`,
		"adapter":      `"model": "smollm2-135m", "adapter": {"targets": "all-linear"}, "precision": "bf16", "sequence": 1024`,
		"sharded":      `"model": "gpt2", "parallel": {"kind": "fsdp", "gpus": 4, "mixed_precision": "bf16"}`,
		"buckets":      `"model": "gpt2", "parallel": {"kind": "ddp", "gpus": 4, "gradient_as_bucket_view": true}`,
		"matrices":     `"model": "smollm2-135m", "parallel": {"kind": "tp", "gpus": 3}`,
		"images":       `"model": "vit"`,
		"deep":         `"model": "pythia-410m", "checkpointing": true, "precision": "bf16", "parallel": {"kind": "fsdp", "gpus": 8}`,
		"windows":      `"model": "gemma-2-2b", "precision": "amp-bf16"`,
	} {
		t.Run(name, func(t *testing.T) {
			var o *Outline
			for _, batch := range []int64{1, 2, 4, 16, 64} {
				for _, passes := range []int64{1, 2, 6} {
					w := workloadtest.Parse(t, fmt.Sprintf(`{%s, "batch": %d, "accumulate": %d}`, keys, batch, passes))
					var err error
					if o == nil {
						if o, err = NewOutline(w, card, nil); err != nil {
							t.Fatal(err)
						}
					}
					s, err := o.OnCards(w, nil, nil).Process(card)
					if err != nil {
						t.Fatal(err)
					}
					allocated, _ := s.Memory()
					if share := float64(o.NeedsWith(batch, passes)) / float64(allocated); share > 1.02 || share < far {
						t.Errorf("batch %d, %d passes: needs at least %v, takes %v", batch, passes, o.NeedsWith(batch, passes), allocated)
					}
				}
			}
		})
	}
}

// TestOutlineInOneProcess holds an outline whose two batches are in one process,
// primed or not, to two processes of two steps.
func TestOutlineInOneProcess(t *testing.T) {
	modelstest.NeedSource(t)
	card := workloadtest.Card(t, "a100-80gb")
	ways := []string{
		`"precision": "amp-bf16"`, `"checkpointing": true`, `"precision": "bf16", "optimizer": "adamw-8bit", "checkpointing": true`,
		`"parallel": {"kind": "fsdp", "gpus": 4, "mixed_precision": "bf16"}`, `"parallel": {"kind": "ddp", "gpus": 4}`,
		`"precision": "bf16", "adapter": {"targets": "all-linear"}, "parallel": {"kind": "hsdp", "gpus": 16, "shard": 8}`,
		`"loop": {"outputs": "kept"}`, `"loop": "trainer"`,
	}
	joint, primed := 0, 0
	for i, model := range smallModels {
		for j, way := range ways {
			if (i+j)%2 > 0 && j > 0 {
				continue
			}
			w, err := workload.Parse(fmt.Appendf(nil, `{%s, %s}`, model, way))
			if err != nil {
				continue // not every model has every way
			}
			o, err := wholeOutline(w, nil, card, nil)
			if errors.Is(err, ErrFault) {
				t.Fatal(err)
			}
			if err != nil {
				continue
			}
			if p, err := o.process(w, 1, card, nil); err == nil && p.primed && len(p.stepEnds) == 2 {
				primed++
			}
			for k, got := range []sketch{o.one, o.two} {
				at := *w
				at.Batch, at.Accumulate = int64(k+1), 1
				p := &program{w: &at}
				if err := p.start(deviceOf(card), 2, nil); err != nil {
					t.Fatal(err)
				}
				if p.takesOtherBatches() {
					joint++
				}
				if want := p.sketch(o.lengths); !equalSketches(got, want) {
					t.Errorf("%s, %s, batch %d: %+v, in a process of its own %+v", model, way, k+1, got, want)
				}
			}
		}
	}
	if joint < 100 || primed < 100 {
		t.Errorf("only %d batches shared a process, and %d processes were primed", joint, primed)
	}
}

// equalSketches compares sketches. A first step makes workspaces, so that parts of it
// are not cut where those of others are.
func equalSketches(a, b sketch) bool {
	again := func(x, y partPeak) int { return cmp.Compare(x.again, y.again) }
	return a.peak == b.peak && reflect.DeepEqual(a.timing, b.timing) && len(a.parts) == len(b.parts) &&
		slices.MaxFunc(a.parts, again).again == slices.MaxFunc(b.parts, again).again
}

// TestShallowOutline holds outlines of deep models, which are made of models with fewer
// layers, to outlines of the models themselves.
func TestShallowOutline(t *testing.T) {
	compared := 0
	card := workloadtest.Card(t, "a100-80gb")
	for _, model := range []string{
		`"model": "llama-3.2-1b"`, `"model": "gpt2", "config": {"n_layer": 36}`, `"model": "bert", "config": {"num_hidden_layers": 25}`,
		`"model": "gemma-2-2b"`, `"model": "gemma-3-1b", "config": {"num_hidden_layers": 62}`, `"model": "qwen3-0.6b"`, `"model": "pythia-410m"`, `"model": "opt-350m"`,
		`"model": "smollm3-3b"`, `"model": "modernbert-large"`, `"model": "mistral-7b"`, `"model": "phi-3-mini"`,
	} {
		alone := workloadtest.Parse(t, fmt.Sprintf(`{%s}`, model))
		if _, _, _, ok := models.Shallow(alone.Config); !ok {
			t.Errorf("%s is deep, and its layers repeat", model)
		}
		for _, way := range []string{
			`"precision": "amp-bf16"`, `"precision": "bf16", "optimizer": "adamw-8bit", "checkpointing": true`,
			`"precision": "bf16", "adapter": {"targets": "all-linear"}, "quantize": "nf4-double"`,
			`"parallel": {"kind": "fsdp", "gpus": 8, "mixed_precision": "bf16"}`, `"parallel": {"kind": "fsdp+tp", "gpus": 8, "tensor": 2}`,
			`"checkpointing": true, "precision": "bf16", "parallel": {"kind": "fsdp", "gpus": 8}`,
			`"precision": "bf16", "adapter": {"targets": "all-linear"}, "parallel": {"kind": "hsdp", "gpus": 16, "shard": 8}`,
			`"checkpointing": true, "parallel": {"kind": "ddp", "gpus": 4}`,
		} {
			w, err := workload.Parse(fmt.Appendf(nil, `{%s, %s}`, model, way))
			if err != nil {
				continue // not every model has every way
			}
			shallow, err := NewOutline(w, card, nil)
			if errors.Is(err, ErrFault) {
				t.Errorf("%s, %s: %v", model, way, err)
			}
			if err != nil {
				continue
			}
			compared++
			compareOutlines(t, model+", "+way, w, card, shallow)
		}
	}
	if compared < 60 {
		t.Errorf("only %d were compared", compared)
	}
}

func compareOutlines(t *testing.T, name string, w *workload.Workload, card *gpu.Card, shallow *Outline) {
	t.Helper()
	whole, err := wholeOutline(w, nil, card, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole.timed()
	if shallow.Parameters != whole.Parameters {
		t.Errorf("%s: %d parameters, in all layers %d", name, shallow.Parameters, whole.Parameters)
	}
	for _, batch := range []int64{1, 4, 64} {
		for _, passes := range []int64{1, 6} {
			a, b := shallow.NeedsWith(batch, passes), whole.NeedsWith(batch, passes)
			if share := float64(a) / float64(b); share < 0.8 || share > 1.1 || batch == 1 && a != b {
				t.Errorf("%s, batch %d, %d passes: needs %v, with all layers %v", name, batch, passes, a, b)
			}
			x, y := shallow.Timing(batch).Seconds(card, w.Parallel, passes).Total(), whole.Timing(batch).Seconds(card, w.Parallel, passes).Total()
			if x/y < 0.985 || x/y > 1.015 { // the optimizer's kernels take many parameters at once
				t.Errorf("%s, batch %d, %d passes: %v s, with all layers %v s", name, batch, passes, x, y)
			}
		}
	}
}

// outlineOf outlines a workload on an A100.
func outlineOf(t *testing.T, w *workload.Workload) *Outline {
	t.Helper()
	o, err := NewOutline(w, workloadtest.Card(t, "a100-80gb"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
