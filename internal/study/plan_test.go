package study

import (
	"fmt"
	"slices"
	"testing"

	"memorymark/internal/trace"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// The files are called as people who do this study expect.
func TestPlanFiles(t *testing.T) {
	p := &Plan{Models: []string{"lm-2.7b"}, Contexts: []int64{128, 256, 512}, Batch: 4, Mixed: workload.AMPBF16, Card: workloadtest.Card(t, "h200"), Warmup: 5, Steps: 1}
	cells, err := p.Cells()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range cells {
		got = append(got, p.SnapshotFiles(c)...)
	}
	want := []string{
		"2.7B_ctx128_forward_snapshot.pickle", "2.7B_ctx128_training_snapshot.pickle",
		"2.7B_ctx256_forward_snapshot.pickle", "2.7B_ctx256_training_snapshot.pickle",
		"2.7B_ctx512_forward_snapshot.pickle", "2.7B_ctx512_forward_fp32_snapshot.pickle", "2.7B_ctx512_forward_bf16_snapshot.pickle",
		"2.7B_ctx512_training_snapshot.pickle", "2.7B_ctx512_training_fp32_snapshot.pickle", "2.7B_ctx512_training_bf16_snapshot.pickle",
	}
	if !slices.Equal(got, want) {
		t.Errorf("files %q", got)
	}
}

// Parameters, gradients and optimizer state do not depend on the precision of
// autocast; activations do, and each weight is there twice.
func TestCompare(t *testing.T) {
	of := func(precision string) *Result {
		w := workloadtest.Parse(t, fmt.Sprintf(`{"model": "lm-small", "batch": 4, "sequence": 256, "precision": %q}`, precision))
		_, r := profile(t, Cell{Workload: w, Card: workloadtest.Card(t, "h200"), Warmup: 2, Steps: 1})
		return r
	}
	c := Compare(of("fp32"), of("amp-bf16"))
	if len(c.Phases) != 3 {
		t.Fatalf("%d phases", len(c.Phases))
	}
	p := c.Phase(trace.ForwardMark)
	for _, what := range []string{"parameters", "gradients", "optimizer state"} {
		if r := p.Row(what); r.Effect() != Stays {
			t.Errorf("%s: %+v", what, r)
		}
	}
	if r := p.Row(ActivationRow); r.Effect() != Shrinks || r.Mixed <= 0 {
		t.Errorf("activations: %+v", r)
	}
	// 12 layers of 4 D² + 3 D F, and the head, two bytes each.
	const weights = 12*(4*768*768+3*768*3072) + 768*10000
	if r := p.Row(WeightCopiesRow); r.Full != 0 || r.Mixed != 2*weights {
		t.Errorf("weights that autocast has cast: %+v, want %d", r, 2*weights)
	}
	for _, p := range c.Phases {
		_, stays := p.By(Stays)
		_, shrinks := p.By(Shrinks)
		_, grows := p.By(Grows)
		if full := stays.Full + shrinks.Full + grows.Full; full != p.Full.Requested {
			t.Errorf("%s: the rows add up to %v of %v", p.Name, full, p.Full.Requested)
		}
		if mixed := stays.Mixed + shrinks.Mixed + grows.Mixed; mixed != p.Mixed.Requested {
			t.Errorf("%s: the rows add up to %v of %v", p.Name, mixed, p.Mixed.Requested)
		}
	}
}

// Files that were written over by another cell of the same name are not taken
// for the first one's.
func TestJournalByName(t *testing.T) {
	path := t.TempDir() + "/journal"
	cells := cellsOf(t, 1, 2)
	cells[0].Name, cells[1].Name = "same", "same"
	for i, want := range []int32{1, 1, 1} {
		gpu := &recorded{}
		j, err := OpenJournal(path, "v1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), gpu, cells[i%2:i%2+1], Options{Journal: j}); err != nil || gpu.calls.Load() != want {
			t.Errorf("run %d profiled %d cells: %v", i, gpu.calls.Load(), err)
		}
		j.Close()
	}
}
