package predict

import (
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/search"
	"memorymark/internal/workload/workloadtest"
)

// A batch that trains only if NCCL's watchdog is in time does not fit: not for a
// prediction, not as the largest batch, and not in a plan.
func TestFitsEitherWay(t *testing.T) {
	w := workloadtest.Parse(t, `{"config": {"model_type": "gpt2", "n_layer": 2}, "sequence": 128, "parallel": {"kind": "ddp", "gpus": 2}}`)
	limit := 2 * bytesize.GiB
	w, card := w.WithLimit(limit), workloadtest.Card(t, "h200")
	b := NewBatches(w, card, nil)
	found, err := b.Largest(search.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trains := func(batch int64, late bool) bool {
		out, err := b.play(variant{batch, late}, limit)
		if err != nil {
			t.Fatal(err)
		}
		return out.Fits()
	}
	for _, c := range []struct {
		batch        int64
		inTime, late bool
	}{{found.Largest, true, true}, {found.Largest + 1, true, false}} {
		if inTime, late := trains(c.batch, false), trains(c.batch, true); inTime != c.inTime || late != c.late {
			t.Fatalf("batch %d trains in time: %t, late: %t", c.batch, inTime, late)
		}
		w.Batch = c.batch
		p := mustPredict(t, w, card)
		if p.Fits != c.late || p.Late.Fits != c.late || (p.OutOfMemory == nil) != c.late {
			t.Errorf("batch %d is predicted to fit: %t, late: %t, out of memory: %+v", c.batch, p.Fits, p.Late.Fits, p.OutOfMemory)
		}
		o, err := NewOutline(w, card, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := o.OnCards(w, nil, nil).Process(card)
		if err != nil {
			t.Fatal(err)
		}
		if _, fits, err := s.Within(limit); fits != c.late || err != nil {
			t.Errorf("batch %d fits in a plan: %t, %v", c.batch, fits, err)
		}
	}
}

// Where gradients are reduced after every pass, NCCL holds DDP's first buckets
// into the second one: five processes on an H200 (PyTorch 2.11, transformers
// 5.17) had these peaks, less the 512 bytes of an import (withoutImports).
func TestLateBetweenPasses(t *testing.T) {
	w := workloadtest.Parse(t, `{"model": "gpt2", "batch": 4, "sequence": 256, "accumulate": 2, "optimizer_impl": "foreach", "parallel": {"kind": "ddp", "gpus": 2}}`)
	p := mustPredict(t, w, workloadtest.Card(t, "h200"))
	reserved := []bytesize.Bytes{3986685952, 4609540096, 4609540096}
	for i, s := range p.Steps {
		if s.PeakReserved != reserved[i] {
			t.Errorf("step %d reserves %d bytes, measured %d", i+1, s.PeakReserved, reserved[i])
		}
	}
	if got, want := p.Steps[0].PeakAllocated, bytesize.Bytes(3846796800-512); got != want {
		t.Errorf("the first step takes %d bytes, measured %d", got, want)
	}
	if p.Late != nil {
		t.Error("it is said to be left to chance")
	}
}
