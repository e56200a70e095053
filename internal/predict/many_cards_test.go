package predict

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/models/modelstest"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// TestOneRunForManyCards holds what a run on one card tells of all others to runs on
// each of them, to every event.
func TestOneRunForManyCards(t *testing.T) {
	runs, cards := 0, 0
	for name, keys := range map[string]string{
		"norms":        `"model": "bert", "config": {"num_hidden_layers": 2}, "sequence": 512, "batch": 9`,
		"causal":       `"model": "gpt2", "config": {"n_layer": 2}, "precision": "amp-fp16", "batch": 4, "accumulate": 6`,
		"checkpointed": `"model": "llama-3.2-1b", "config": {"num_hidden_layers": 2}, "checkpointing": true, "precision": "bf16", "sequence": 700`,
		"capped":       `"model": "gemma-2-2b", "config": {"num_hidden_layers": 2}, "precision": "amp-bf16", "sequence": 300`,
		"quantized":    `"model": "llama-3.2-1b", "config": {"num_hidden_layers": 2}, "precision": "bf16", "adapter": {"targets": "all-linear"}, "quantize": "nf4-double"`,
		"experts":      `"model": "qwen3-30b-a3b", "config": {"num_hidden_layers": 2, "num_experts": 8, "hidden_size": 256}, "precision": "bf16", "sequence": 256`,
		"convolutions": `"model": "resnet", "batch": 4, "precision": "tf32"`,
		"encoder":      `"model": "t5-small", "batch": 3, "sequence": 2100, "optimizer": "adafactor"`,
		"shards":       `"model": "gpt2", "config": {"n_layer": 3}, "batch": 2, "sequence": 1024, "accumulate": 5, "parallel": {"kind": "fsdp", "gpus": 8, "mixed_precision": "bf16"}`,
		"buckets":      `"model": "gpt2", "config": {"n_layer": 2}, "batch": 3, "parallel": {"kind": "ddp", "gpus": 4}`,
		"matrices":     `"model": "smollm2-135m", "config": {"num_hidden_layers": 2}, "parallel": {"kind": "tp", "gpus": 3}, "accumulate": 4`,
		"earlier":      `"model": "bert", "config": {"num_hidden_layers": 2}, "sequence": 512, "batch": 9, "versions": {"torch": "2.6", "transformers": "4.51"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w, err := workload.Parse(fmt.Appendf(nil, `{%s}`, keys))
			modelstest.NeedSourceFor(t, err)
			if err != nil {
				t.Fatal(err)
			}
			together := onCards(t, w)
			for _, card := range gpu.All() {
				alone := onCards(t, w)
				compareProcesses(t, card, together, alone)
				cards++
			}
			runs += len(together.runs)
		})
	}
	if runs*3 > cards {
		t.Errorf("%d runs for %d cards: next to nothing is shared", runs, cards)
	}
}

func onCards(t *testing.T, w *workload.Workload) *CardRuns {
	t.Helper()
	return outlineOf(t, w).OnCards(w, nil, nil)
}

func compareProcesses(t *testing.T, card *gpu.Card, together, alone *CardRuns) {
	t.Helper()
	got, err := together.Process(card)
	if err != nil {
		t.Fatal(err)
	}
	want, err := alone.Process(card)
	if err != nil {
		t.Fatal(err)
	}
	allocated, reserved := want.Memory()
	timing := want.program.timing()
	if a, r := got.Memory(); a != allocated || r != reserved || !reflect.DeepEqual(got.program.timing(), timing) {
		t.Errorf("%s: %v allocated, %v reserved and %+v; on that card alone %v, %v and %+v",
			card.ID, a, r, got.program.timing(), allocated, reserved, timing)
	}
	for one, other := got, want; one != nil; one, other = one.late, other.late {
		one.program.t.SetSizes(one.sizes)
		a, b := one.program.requests(), other.program.requests()
		if !slices.Equal(a.Events, b.Events) || !slices.Equal(a.Loops, b.Loops) {
			t.Errorf("%s: other events than on that card alone, the first are %+v", card.ID, firstOther(a.Events, b.Events))
		}
	}
	for _, limit := range []bytesize.Bytes{allocated, (allocated + reserved) / 2, reserved} {
		_, x, errX := got.Within(limit)
		_, y, errY := want.Within(limit)
		if x != y || errX != nil || errY != nil {
			t.Errorf("%s: fits %v: %v, on that card alone %v (%v, %v)", card.ID, limit, x, y, errX, errY)
		}
	}
}

// firstOther are the first events that differ, none if some are missing.
func firstOther(a, b []trace.Event) []trace.Event {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return []trace.Event{a[i], b[i]}
		}
	}
	return nil
}
