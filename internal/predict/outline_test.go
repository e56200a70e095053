package predict

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// What an outline says is needed is below what is taken, and not far below.
func TestOutline(t *testing.T) {
	const far = 0.7 // a part may peak elsewhere with a larger batch
	card, err := gpu.Find("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
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
	} {
		t.Run(name, func(t *testing.T) {
			var o *Outline
			for _, batch := range []int64{1, 2, 4, 16, 64} {
				for _, passes := range []int64{1, 2, 6} {
					w, err := workload.Parse(fmt.Appendf(nil, `{%s, "batch": %d, "accumulate": %d}`, keys, batch, passes))
					if err != nil {
						t.Fatal(err)
					}
					if o == nil {
						if o, err = NewOutline(w, card, nil, nil); err != nil {
							t.Fatal(err)
						}
					}
					print, err := o.Footprints(w, nil).On(card)
					if err != nil {
						t.Fatal(err)
					}
					if share := float64(o.NeedsWith(batch, passes)) / float64(print.Allocated); share > 1.02 || share < far {
						t.Errorf("batch %d, %d passes: needs at least %v, takes %v", batch, passes, o.NeedsWith(batch, passes), print.Allocated)
					}
				}
			}
		})
	}
}

// TestOutlineInOneProcess holds an outline whose two batches are in one process,
// primed or not, to two processes of two steps.
func TestOutlineInOneProcess(t *testing.T) {
	card, err := gpu.Find("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
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
			o, err := NewOutline(w, card, nil, nil)
			if errors.Is(err, ErrFault) {
				t.Fatal(err)
			}
			if err != nil {
				continue
			}
			if p, err := o.process(w, 1, card, nil); err == nil && p.primed && len(p.Steps) == 2 {
				primed++
			}
			for k, got := range []sketch{o.one, o.two} {
				at := *w
				at.Batch, at.Accumulate = int64(k+1), 1
				p, err := (&Process{w: &at}).goOn(deviceOf(card), 2, nil)
				if err != nil {
					t.Fatal(err)
				}
				if p.takesOtherBatches() {
					joint++
				}
				if want := p.sketch(); !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s, batch %d: %+v, in a process of its own %+v", model, way, k+1, got, want)
				}
			}
		}
	}
	if joint < 100 || primed < 100 {
		t.Errorf("only %d batches shared a process, and %d processes were primed", joint, primed)
	}
}

// outlineOf outlines a workload on an A100.
func outlineOf(t *testing.T, w *workload.Workload) *Outline {
	t.Helper()
	o, err := NewOutline(w, cardOf(t, "a100-80gb"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
