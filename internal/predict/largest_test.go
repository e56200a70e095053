package predict

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"memorymark/internal/search"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// largestBatch is a line of largest-batch.jsonl, and what was predicted.
type largestBatch struct {
	ID       string
	Workload json.RawMessage
	Measured struct {
		Largest int64 `json:"largest_batch"`
	}
	workload   *workload.Workload
	parameters int64 // of the model
	predicted  *search.Found
}

// off is how far the prediction is off, as a share.
func (b *largestBatch) off() float64 {
	return float64(b.predicted.Largest-b.Measured.Largest) / float64(b.Measured.Largest)
}

// largest caches what largestBatches finds, which takes seconds.
var largest []largestBatch

func largestBatches(t *testing.T) []largestBatch {
	t.Helper()
	if largest != nil {
		return largest
	}
	largest = readLines[largestBatch](t, "largest-batch.jsonl")
	for i := range largest {
		b := &largest[i]
		var err error
		if b.workload, err = workload.Parse(b.Workload); err != nil {
			t.Fatal(err)
		}
		run := NewBatches(b.workload, workloadtest.Card(t, "h200"), nil)
		if b.predicted, err = run.Largest(search.Options{}); err != nil {
			t.Fatalf("%s: %v", b.ID, err)
		}
		s, err := run.Process(b.predicted.Largest)
		if err != nil {
			t.Fatalf("%s: %v", b.ID, err)
		}
		b.parameters = s.Parameters()
	}
	return largest
}

// TestLargest compares the largest batches with those that survived three
// steps in a fresh process on an H200 whose allocator was capped.
func TestLargest(t *testing.T) {
	exact, worst := 0, 0.0
	batches := largestBatches(t)
	for i := range batches {
		b := &batches[i]
		off := b.off()
		worst = max(worst, max(off, -off))
		if off == 0 {
			exact++
			continue
		}
		t.Logf("%s: %d, measured %d (%+.2f %%), probes %v", b.ID, b.predicted.Largest, b.Measured.Largest, 100*off, b.predicted.Order)
		if b.predicted.Largest > b.Measured.Largest+1 {
			t.Errorf("%s: %d would not train", b.ID, b.predicted.Largest)
		}
	}
	t.Logf("%d of %d exact, worst %.2f %%", exact, len(batches), 100*worst)
	if exact < 23 || worst > 0.01 {
		t.Errorf("%d of %d exact, worst %.2f %%: it was better", exact, len(batches), 100*worst)
	}
}

// measuredEdge is a line of edges.jsonl, and the batches for which the
// simulation disagrees.
type measuredEdge struct {
	ID       string
	Workload json.RawMessage
	Survived map[int64]bool
	wrong    []int64
}

func measuredEdges(t *testing.T) []measuredEdge {
	t.Helper()
	edges := readLines[measuredEdge](t, "edges.jsonl")
	for i := range edges {
		e := &edges[i]
		w := workloadtest.Parse(t, e.Workload)
		for _, batch := range slices.Sorted(maps.Keys(e.Survived)) {
			s, err := NewBatches(w, workloadtest.Card(t, "h200"), nil).Process(batch)
			if err != nil {
				t.Fatal(err)
			}
			if s.Fits() != e.Survived[batch] {
				e.wrong = append(e.wrong, batch)
			}
		}
	}
	return edges
}

// TestEdges holds the simulation to every batch that was tried around an edge
// on a GPU. Fragmentation makes some sizes fail that are smaller than some
// that fit; the simulated allocator fragments alike.
func TestEdges(t *testing.T) {
	tried := 0
	for _, e := range measuredEdges(t) {
		tried += len(e.Survived)
		if len(e.wrong) > 0 {
			t.Errorf("%s: batches %v are wrong", e.ID, e.wrong)
		}
	}
	if tried != 54 {
		t.Errorf("%d batches tried, want 54", tried)
	}
}
