package predict

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/models/modelstest"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// TestPassesRepeat holds accumulated passes of which one stands for most to the
// same process with every pass run: peaks of steps and of their parts, where the
// peak is and of what, the recording, under limits at which it fits and does not.
func TestPassesRepeat(t *testing.T) {
	for name, keys := range map[string]string{
		"plain":        `"model": "bert", "config": {"num_hidden_layers": 2}, "batch": 3`,
		"outputs kept": `"model": "gpt2", "config": {"n_layer": 2}, "batch": 2, "loop": {"outputs": "kept"}, "precision": "amp-bf16"`,
		"trainer":      `"model": "bert", "config": {"num_hidden_layers": 2}, "batch": 3, "loop": "trainer", "precision": "amp-bf16"`,
		"lightning":    `"model": "gpt2", "config": {"n_layer": 2}, "batch": 5, "loop": "lightning", "precision": "amp-fp16"`,
		"accelerate":   `"model": "gpt2", "config": {"n_layer": 2}, "batch": 5, "loop": "accelerate", "precision": "amp-bf16"`,
		"expandable":   `"model": "gpt2", "config": {"n_layer": 2}, "batch": 5, "loop": "accelerate", "expandable_segments": true`,
		"checkpointed": `"model": "llama-3.2-1b", "config": {"num_hidden_layers": 2}, "batch": 1, "checkpointing": true, "sequence": 300`,
		"adapter":      `"model": "llama-3.2-1b", "config": {"num_hidden_layers": 2}, "batch": 1, "sequence": 100, "adapter": {"targets": "all-linear"}, "quantize": "nf4-double"`,
		"convolutions": `"model": "resnet", "batch": 4, "precision": "amp-bf16"`,
		"ranks":        `"model": "gpt2", "config": {"n_layer": 2}, "batch": 3, "parallel": {"kind": "fsdp", "gpus": 4}`,
		"dropout":      `"model": "bert", "config": {"num_hidden_layers": 2}, "batch": 2, "attention": "eager", "clip_grad_norm": true`,
		"encoder":      `"model": "t5-small", "batch": 1, "sequence": 64, "precision": "amp-bf16", "optimizer": "adafactor"`,
		"experts":      `"model": "qwen3-30b-a3b", "config": {"num_hidden_layers": 2, "num_experts": 8, "hidden_size": 256}, "precision": "bf16", "sequence": 256, "batch": 1`,
		"matrices":     `"model": "smollm2-135m", "config": {"num_hidden_layers": 2}, "batch": 2, "parallel": {"kind": "tp", "gpus": 3}`,
		"mixed shards": `"model": "smollm2-135m", "config": {"num_hidden_layers": 2}, "batch": 2, "checkpointing": true, "adapter": {"targets": "all-linear"}, "parallel": {"kind": "hsdp", "gpus": 16, "shard": 8, "mixed_precision": "bf16"}`,
		"shared state": `"model": "gpt2", "config": {"n_layer": 2}, "batch": 3, "parallel": {"kind": "zero1", "gpus": 4}, "loop": "trainer"`,
		"bucket views": `"model": "gpt2", "config": {"n_layer": 2}, "batch": 3, "parallel": {"kind": "ddp", "gpus": 4, "gradient_as_bucket_view": true}, "loop": "accelerate"`,
		"few buckets":  `"model": "smollm2-135m", "config": {"num_hidden_layers": 2}, "batch": 2, "adapter": {"targets": "all-linear", "rank": 2}, "parallel": {"kind": "ddp", "gpus": 4}`,
		"whole shards": `"model": "gpt2", "config": {"n_layer": 2}, "batch": 3, "parallel": {"kind": "fsdp", "gpus": 4, "mixed_precision": "bf16"}, "loop": "accelerate"`,
		"buckets":      `"model": "gpt2", "config": {"n_layer": 2}, "batch": 3, "parallel": {"kind": "ddp", "gpus": 4}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, passes := range []int{3, 4, 5, 6, 9, 17} {
				w, err := workload.Parse(fmt.Appendf(nil, `{%s, "accumulate": %d}`, keys, passes))
				modelstest.NeedSourceFor(t, err)
				if err != nil {
					t.Fatal(err)
				}
				comparePasses(t, w)
			}
		})
	}
}

// comparePasses compares a process with the same one run in full.
func comparePasses(t *testing.T, w *workload.Workload) {
	t.Helper()
	card := workloadtest.Card(t, "h200")
	short, whole := trained(t, w, card, false), trained(t, w, card, true)
	loops, fewest := short.requests().Loops, 3
	// The last pass updates, or it reduces gradients, or the second one rebuilds buckets.
	if w.Loop.Name == workload.LightningLoop || hasBuckets(w) || w.Parallel != nil && w.Loop.IsLibrarys() {
		fewest = 4
	}
	if w.Accumulate >= fewest != (len(loops) == steps) {
		t.Fatalf("%d passes: loops %v", w.Accumulate, loops)
	}
	if n := short.requests().EventsWithin(0, short.events()); n != whole.events() {
		t.Fatalf("%d passes: %d events, and %d if all are run", w.Accumulate, n, whole.events())
	}
	full, err := NewBatches(w, card, nil).newProcess(whole, Limit(w, card))
	if err != nil {
		t.Fatal(err)
	}
	need := full.Peak().PeakReserved
	for _, limit := range []bytesize.Bytes{need * 2, need, need * 97 / 100, need * 3 / 4} {
		r := NewBatches(w.WithLimit(limit), card, nil)
		a, err := r.newProcess(short, limit)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.newProcess(whole, limit)
		if err != nil {
			t.Fatal(err)
		}
		compareSimulations(t, fmt.Sprintf("%d passes within %v", w.Accumulate, limit), a, b)
	}
}

func trained(t *testing.T, w *workload.Workload, card *gpu.Card, everyPass bool) *program {
	t.Helper()
	p := built(t, w, deviceOf(card))
	p.everyPass = everyPass
	p.train(steps)
	return p
}

func compareSimulations(t *testing.T, name string, a, b *Process) {
	t.Helper()
	if x, y := a.Steps(), b.Steps(); !slices.Equal(x, y) {
		t.Errorf("%s: steps %+v, and %+v if all passes are run", name, x, y)
	}
	if x, y := a.OutOfMemory(), b.OutOfMemory(); !reflect.DeepEqual(x, y) {
		t.Errorf("%s: fails %+v, and %+v if all passes are run", name, x, y)
	}
	if x, y := a.Breakdown(), b.Breakdown(); x != y {
		t.Errorf("%s: breakdown %+v, and %+v if all passes are run", name, x, y)
	}
	if x, y := a.StepSeconds(), b.StepSeconds(); x/y < 1-1e-12 || x/y > 1+1e-12 {
		t.Errorf("%s: %v s, and %v s if all passes are run", name, x, y)
	}
	if x, y := phasesAfter(t, a), phasesAfter(t, b); !slices.Equal(x, y) {
		t.Errorf("%s: phases %+v, and %+v if all passes are run", name, x, y)
	}
	x, y := traceAfter(t, a), traceAfter(t, b)
	if !slices.Equal(x.Events, y.Events) || !slices.Equal(x.Marks, y.Marks) || !reflect.DeepEqual(x.Final, y.Final) {
		t.Errorf("%s: the recording of %d events is another than that of all passes, %d", name, len(x.Events), len(y.Events))
	}
	if err := x.CheckValid(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	settledA, errA := allocator.PlaySettled(a.program.requests(), a.options(a.Limit), a.program.partEnds(), stepPart+1)
	settledB, errB := allocator.PlaySettled(b.program.requests(), b.options(b.Limit), b.program.partEnds(), stepPart+1)
	if errA != nil || errB != nil || !slices.Equal(settledA.Parts, settledB.Parts) {
		t.Errorf("%s: settled %+v, and %+v if all passes are run", name, settledA, settledB)
	}
}
