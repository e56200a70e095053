package predict

import (
	"fmt"
	"slices"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
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
			if err != nil {
				t.Fatal(err)
			}
			together := footprintsOf(t, w)
			for _, card := range gpu.All() {
				alone := footprintsOf(t, w)
				compareFootprints(t, card, together, alone)
				cards++
			}
			runs += len(together.runs)
		})
	}
	if runs*3 > cards {
		t.Errorf("%d runs for %d cards: next to nothing is shared", runs, cards)
	}
}

func footprintsOf(t *testing.T, w *workload.Workload) *Footprints {
	t.Helper()
	return outlineOf(t, w).Footprints(w, nil, nil)
}

func compareFootprints(t *testing.T, card *gpu.Card, together, alone *Footprints) {
	t.Helper()
	got, err := together.On(card)
	if err != nil {
		t.Fatal(err)
	}
	want, err := alone.On(card)
	if err != nil {
		t.Fatal(err)
	}
	if got.Allocated != want.Allocated || got.Reserved != want.Reserved || got.Timing != want.Timing {
		t.Errorf("%s: %v allocated, %v reserved and %+v; on that card alone %v, %v and %+v",
			card.ID, got.Allocated, got.Reserved, got.Timing, want.Allocated, want.Reserved, want.Timing)
	}
	for i, way := range got.ways {
		way.Process.t.SetSizes(got.sizes[i])
		a, b := way.Process.Trace(), want.ways[i].Process.Trace()
		if !slices.Equal(a.Events, b.Events) || !slices.Equal(a.Loops, b.Loops) {
			t.Errorf("%s: other events than on that card alone, the first are %+v", card.ID, firstOther(a.Events, b.Events))
		}
	}
	for _, limit := range []bytesize.Bytes{want.Allocated, (want.Allocated + want.Reserved) / 2, want.Reserved} {
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
