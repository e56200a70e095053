package predict

import (
	"testing"

	"memorymark/internal/workload/workloadtest"
)

const smallBert = `"config":{"model_type":"bert","architectures":["BertForSequenceClassification"],"num_hidden_layers":2}`

// The parts of a breakdown add up, and each is what it says.
func TestBreakdown(t *testing.T) {
	p := mustPredict(t, workloadtest.Parse(t, `{`+smallBert+`,"batch":8}`), workloadtest.Card(t, "a10"))
	b := &p.Breakdown
	sum := b.Parts()[0].Bytes
	for _, part := range b.Parts()[1:] {
		sum += part.Bytes
		if part.Bytes < 0 {
			t.Errorf("%s: %v", part.Name, part.Bytes)
		}
	}
	if sum != b.Total {
		t.Errorf("the parts are %d and the total is %d", sum, b.Total)
	}
	weights := 4 * p.Parameters
	if got := int64(b.OptimizerState); got < 2*weights || got > 2*weights+1<<20 {
		t.Errorf("optimizer state %d, the weights are %d", got, weights)
	}
	if got := int64(b.Parameters); got < weights || got > weights+1<<20 {
		t.Errorf("parameters %d, the weights are %d", got, weights)
	}
	if b.Input == 0 || b.Workspaces == 0 || b.Gradients == 0 || b.Context == 0 {
		t.Errorf("something is missing: %+v", *b)
	}
}

// What does not fit says so, and what it would have taken.
func TestOutOfMemory(t *testing.T) {
	p := mustPredict(t, workloadtest.Parse(t, `{`+smallBert+`,"batch":64,"limit_gib":1}`), workloadtest.Card(t, "a10"))
	if p.OutOfMemory == nil || p.OutOfMemory.Step != 1 || p.OutOfMemory.Limit != 1<<30 {
		t.Fatalf("%+v", p.OutOfMemory)
	}
	if len(p.Steps) != 3 || p.Steps[2].PeakReserved <= 1<<30 {
		t.Errorf("the steps do not say what they would take: %+v", p.Steps)
	}
}

func TestMemoryLine(t *testing.T) {
	w, card := workloadtest.Parse(t, `{`+smallBert+`,"batch":128}`), workloadtest.Card(t, "h200")
	line, err := NewBatches(w, card, nil).MemoryLine(w.Batch)
	if err != nil {
		t.Fatal(err)
	}
	w.Batch = 192
	p := mustPredict(t, w, card)
	got, want := line.Fixed+192*line.PerSample, p.Steps[2].PeakAllocated
	if diff := float64(got-want) / float64(want); diff < -0.01 || diff > 0.01 {
		t.Errorf("the line says %v at batch 192, the prediction %v", got, want)
	}
}

// The trace of a simulation is whole, with and without an end in tears.
func TestTrace(t *testing.T) {
	for _, limit := range []string{"", `,"limit_gib":1`, `,"expandable_segments":true`} {
		s := mustRun(t, workloadtest.Parse(t, `{`+smallBert+`,"batch":64`+limit+`}`), workloadtest.Card(t, "a10"))
		placed, err := s.Trace()
		if err != nil {
			t.Fatal(err)
		}
		if err := placed.CheckValid(); err != nil {
			t.Errorf("%q: %v", limit, err)
		}
	}
}
