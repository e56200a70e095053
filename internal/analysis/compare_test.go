package analysis

import (
	"context"
	"errors"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// What is said in short is what is said at length.
func TestOutlookAgreesWithAnswer(t *testing.T) {
	r := request(t, "resnet-18", "t4")
	a := mustPredict(t, r)
	rows, err := CompareCards(context.Background(), r, []*gpu.Card{r.Card}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := rows[0]
	if o.GPU != "t4" || o.OptimalBatch != a.OptimalBatch || o.Recommended != a.Recommended || o.Memory != a.OptimalMemory || o.Error != "" {
		t.Errorf("short %+v, long %+v", o, a)
	}
	c, err := PredictCurve(r, 5)
	if err != nil {
		t.Fatal(err)
	}
	if c.Largest != a.OptimalBatch || c.Recommended != a.Recommended || *c.MemoryLine != *a.MemoryLine {
		t.Errorf("curve %+v", c)
	}
	for i, x := range c.Points {
		if x.Success != (x.Reserved <= c.Limit) && x.Batch <= c.Largest {
			t.Errorf("%+v with a limit of %d", x, c.Limit)
		}
		if i > 0 && (x.Batch <= c.Points[i-1].Batch || x.Memory < c.Points[i-1].Memory) {
			t.Errorf("%+v after %+v", x, c.Points[i-1])
		}
	}
	if first, last := c.Points[0], c.Points[len(c.Points)-1]; first.Batch != 1 || last.Success || last.Batch <= c.Largest {
		t.Errorf("the curve goes from %+v to %+v", first, last)
	}
}

func TestCompareSettings(t *testing.T) {
	r := request(t, "resnet-18", "t4")
	cells, err := CompareSettings(context.Background(), r, GridSettings{
		Precisions: []workload.Precision{workload.FP32, workload.AMPBF16}, Checkpointing: []bool{false},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(cells) != 6 || cells[0].Precision != workload.FP32 || cells[5].Optimizer != workload.SGD {
		t.Fatalf("%+v", cells)
	}
	if cells[3].OptimalBatch <= cells[0].OptimalBatch {
		t.Errorf("half types do not make room: %+v, %+v", cells[0], cells[3])
	}
	// A ResNet cannot be checkpointed; its cell says so and spoils no other.
	cells, err = CompareSettings(context.Background(), r, GridSettings{Precisions: []workload.Precision{workload.FP32}, Optimizers: []workload.Optimizer{workload.SGD}}, nil)
	if err != nil || cells[0].OptimalBatch == 0 || cells[1].Error == "" {
		t.Errorf("%+v, %v", cells, err)
	}
	// Nor can Trainer step two optimizers.
	r.Workload.Loop = workload.TrainingLoop{Name: workload.TrainerLoop}
	cells, err = CompareSettings(context.Background(), r, GridSettings{Precisions: []workload.Precision{workload.FP32}, Optimizers: []workload.Optimizer{"muon"}}, nil)
	if err != nil || !strings.Contains(cells[0].Error, "loop must be plain") {
		t.Errorf("%+v, %v", cells, err)
	}
}

// If no precisions are named, those that the card has are compared.
func TestSettingsFollowTheCard(t *testing.T) {
	for card, want := range map[string]int{"t4": 2, "a10": 5} {
		cells, err := CompareSettings(context.Background(), request(t, "resnet-18", card), GridSettings{
			Optimizers: []workload.Optimizer{workload.SGD}, Checkpointing: []bool{false},
		}, nil)
		if err != nil || len(cells) != want {
			t.Errorf("%s: %+v, %v", card, cells, err)
		}
	}
}

func TestCompareTooSmallAndCancelled(t *testing.T) {
	r := request(t, "llama-3.2-3b", "a10")
	rows, err := CompareCards(context.Background(), r, []*gpu.Card{r.Card}, nil)
	if err != nil || rows[0].OptimalBatch != 0 || rows[0].Error == "" || rows[0].Missing < 20<<30 {
		t.Errorf("%+v, %v", rows, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := CompareCards(ctx, r, gpu.All(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
