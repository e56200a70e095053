package analysis

import (
	"errors"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// mustPredict answers a question that has an answer.
func mustPredict(tb testing.TB, r Request) *Answer {
	tb.Helper()
	a, err := Predict(r)
	if err != nil {
		tb.Fatalf("%s on %s: %v", r.Workload.Name(), r.Card.ID, err)
	}
	return a
}

func request(t *testing.T, model, card string, change ...func(*workload.Workload)) Request {
	t.Helper()
	d := workload.Draft{}
	d.Set("model", model)
	w, err := d.Workload()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(w)
	}
	g := workloadtest.Card(t, card)
	return Request{Workload: w, Card: g}
}

func requestOf(t *testing.T, card, text string) Request {
	t.Helper()
	w := workloadtest.Parse(t, text)
	c := workloadtest.Card(t, card)
	return Request{Workload: w, Card: c}
}

// TestPredict holds an answer to itself: its parts must follow from each
// other, and the batch it hands out must fit while the next does not.
func TestPredict(t *testing.T) {
	r := request(t, "bert", "a10")
	r.GlobalBatch, r.Changes = 1000, true
	a := mustPredict(t, r)
	results := map[int64]Result{}
	for i, x := range a.Results {
		results[x.Batch] = x
		if i > 0 && x.Batch <= a.Results[i-1].Batch {
			t.Errorf("results are not in order: %d after %d", x.Batch, a.Results[i-1].Batch)
		}
	}
	current, recommended, optimal := results[16], results[a.Recommended], results[a.OptimalBatch]
	if !current.Success || !recommended.Success || !optimal.Success {
		t.Errorf("current %+v, recommended %+v and optimal %+v must be there and fit", current, recommended, optimal)
	}
	if optimal.Reserved > a.Limit || a.Waste != a.GPUTotal-optimal.Memory || a.CurrentWaste != a.GPUTotal-current.Memory {
		t.Errorf("memory does not add up: %+v", a)
	}
	if recommended.SamplesPerSecond < 0.94*optimal.SamplesPerSecond {
		t.Errorf("recommended batch %d makes %.1f samples/s, the optimal one %.1f", a.Recommended, recommended.SamplesPerSecond, optimal.SamplesPerSecond)
	}
	if a.Speedup < 1 || a.Speedup >= a.BatchRatio {
		t.Errorf("speedup %.2f with a batch %.2f times as large", a.Speedup, a.BatchRatio)
	}
	if g := a.Accumulation; g.MicroBatch > a.OptimalBatch || g.MicroBatch*g.Steps < 1000 {
		t.Errorf("accumulation %+v with a largest batch of %d", g, a.OptimalBatch)
	}
	if len(a.Changes) < 5 {
		t.Errorf("changes %+v", a.Changes)
	}
	r.Workload.Batch = a.OptimalBatch + 1
	if worse, err := Predict(r); err != nil || worse.CurrentFits || worse.OptimalBatch != a.OptimalBatch {
		t.Errorf("one sample more: %+v, %v", worse, err)
	}
}

func TestReserveAndMultiples(t *testing.T) {
	plain := mustPredict(t, request(t, "resnet-18", "t4"))
	r := request(t, "resnet-18", "t4")
	r.Reserve, r.MultipleOf = 4*bytesize.GiB, 8
	a := mustPredict(t, r)
	if a.OptimalBatch%8 != 0 || a.Recommended%8 != 0 || a.OptimalBatch >= plain.OptimalBatch {
		t.Errorf("with 4 GiB less, in multiples of 8: %d (recommended %d); without: %d", a.OptimalBatch, a.Recommended, plain.OptimalBatch)
	}
}

func TestTooSmall(t *testing.T) {
	_, err := Predict(request(t, "llama-3.2-3b", "a10"))
	var small *TooSmallError
	if !errors.As(err, &small) {
		t.Fatalf("got %v", err)
	}
	if small.Largest.Bytes == 0 || small.Needs <= small.Limit || !strings.Contains(err.Error(), small.Largest.Name) {
		t.Errorf("%+v: %v", small, err)
	}
}

func TestAccumulate(t *testing.T) {
	for _, c := range []struct{ global, largest, micro, steps int64 }{
		{512, 92, 64, 8}, {512, 512, 512, 1}, {512, 1000, 512, 1}, {97, 50, 49, 2}, {7, 3, 3, 3}, {1, 5, 1, 1},
	} {
		if g := accumulate(c.global, c.largest, func(micro, _ int64) bool { return micro <= c.largest }); g.MicroBatch != c.micro || g.Steps != c.steps {
			t.Errorf("%d with at most %d: %+v", c.global, c.largest, g)
		}
	}
}
