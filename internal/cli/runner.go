package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/job"
	"memorymark/internal/worker"
)

// predictionTime is more than a predicted analysis takes.
const predictionTime = 10 * time.Second

// predictionSlots are a worker that needs no card: it predicts, on all cores.
func predictionSlots() []worker.Slot {
	slots := make([]worker.Slot, runtime.GOMAXPROCS(0))
	for i := range slots {
		slots[i] = worker.Slot{Card: job.Card{ID: "cpu", Name: "predictions"}, Run: runPrediction}
	}
	return slots
}

// runPrediction answers an order from predictions.
func runPrediction(_ context.Context, payload json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
	order, err := analysis.ParseOrder(payload)
	if err != nil {
		return nil, err
	}
	r, err := order.Request()
	if err != nil {
		return nil, err
	}
	if order.Engine != evidence.Predicted {
		return nil, fmt.Errorf("this worker only predicts")
	}
	say(progress, "predicting %s on an %s", r.Workload.Name(), r.Card.Name)
	began := time.Now()
	a, err := analysis.Predict(r)
	if err != nil {
		return nil, err
	}
	for _, x := range a.Results {
		data, err := json.Marshal(struct {
			Kind string `json:"kind"`
			analysis.Result
		}{"tried", x})
		if err == nil {
			progress(data)
		}
	}
	say(progress, "predicted in %v", time.Since(began).Round(time.Millisecond))
	return json.Marshal(a)
}

// say reports progress in words.
func say(progress func(json.RawMessage), format string, args ...any) {
	data, err := json.Marshal(map[string]string{"kind": "message", "message": fmt.Sprintf(format, args...)})
	if err == nil {
		progress(data)
	}
}
