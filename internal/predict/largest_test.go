package predict

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/search"
	"memorymark/internal/workload"
)

// TestLargest compares the largest batches with those that survived three
// steps in a fresh process on an H200 whose allocator was capped.
func TestLargest(t *testing.T) {
	card, err := gpu.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(truthDir + "/largest-batch.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	cases, exact, worst := 0, 0, 0.0
	for ; lines.Scan(); cases++ {
		var c struct {
			ID       string
			Workload json.RawMessage
			Measured struct {
				Largest int64 `json:"largest_batch"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		w, err := workload.Parse(c.Workload)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Largest(w, card, search.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			continue
		}
		off := float64(r.Largest-c.Measured.Largest) / float64(c.Measured.Largest)
		worst = max(worst, max(off, -off))
		if off == 0 {
			exact++
			continue
		}
		t.Logf("%s: %d, measured %d (%+.2f %%), probes %v", c.ID, r.Largest, c.Measured.Largest, 100*off, r.Order)
		if r.Largest > c.Measured.Largest+1 {
			t.Errorf("%s: %d would not train", c.ID, r.Largest)
		}
	}
	t.Logf("%d of %d exact, worst %.2f %%", exact, cases, 100*worst)
	if exact < 21 || worst > 0.035 {
		t.Errorf("%d of %d exact, worst %.2f %%: it was better", exact, cases, 100*worst)
	}
}

// TestEdges holds the simulation to every batch that was tried around an edge
// on a GPU. Fragmentation makes some sizes fail that are smaller than some
// that fit; the simulated allocator fragments alike.
func TestEdges(t *testing.T) {
	card, err := gpu.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(truthDir + "/edges.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	tried, wrong := 0, make(map[string]int)
	for lines.Scan() {
		var c struct {
			ID       string
			Workload json.RawMessage
			Survived map[int64]bool
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		w, err := workload.Parse(c.Workload)
		if err != nil {
			t.Fatal(err)
		}
		for batch, survived := range c.Survived {
			tried++
			s, err := Simulate(withBatch(w, batch), card)
			if err != nil {
				t.Fatal(err)
			}
			if s.Fits() != survived {
				wrong[c.ID]++
				t.Logf("%s at batch %d: fits is %v, on the GPU it was %v", c.ID, batch, s.Fits(), survived)
			}
		}
	}
	// The first segments of a ResNet process lie in ascending order in memory,
	// which the modelled driver does not know; ties between equal blocks then
	// go another way.
	known := map[string]int{"resnet-fp32": 2}
	for id, n := range wrong {
		if n > known[id] {
			t.Errorf("%s: %d batches are wrong", id, n)
		}
	}
	if tried != 54 {
		t.Errorf("%d batches tried, want 54", tried)
	}
}
