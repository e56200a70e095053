package cli

import (
	"context"
	"encoding/json"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/job"
	"memorymark/internal/measure"
	"memorymark/internal/worker"
)

// measurer answers orders by running real steps on a device of this machine.
type measurer struct {
	python  measure.Python
	device  string
	timeout time.Duration    // of a probe
	upload  *worker.Uploader // nil if recordings have nowhere to go
}

// slot is a card whose orders are measured on a device.
func (m measurer) slot(card *gpu.Card, device string) worker.Slot {
	m.device = device
	return worker.Slot{Card: job.Card{ID: card.ID, Name: card.Name}, Run: m.run}
}

// run is the worker's Runner.
func (m measurer) run(ctx context.Context, payload json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
	order, err := analysis.ParseOrder(payload)
	if err != nil {
		return nil, err
	}
	if order.Engine == evidence.Predicted {
		return runPrediction(ctx, payload, progress)
	}
	r, err := order.Request()
	if err != nil {
		return nil, err
	}
	ahead := analysis.LookAhead(r)
	s, err := measure.Start(ctx, measure.Options{
		Python: m.python, Device: m.device, Timeout: m.timeout, Workload: r.Workload, Spares: analysis.Spares(r),
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // it was killed if it did not end
	a, err := analysis.Measure(ctx, r, analysis.Measurement{Session: s, Ahead: ahead, Progress: func(e analysis.Event) {
		if data, err := json.Marshal(e); err == nil {
			progress(data)
		}
	}})
	if err != nil {
		return nil, err
	}
	if a.Snapshot, err = m.record(ctx, s, r, a.OptimalBatch); err != nil {
		say(progress, "there is no recording of the steps: %v", err)
	}
	return json.Marshal(a)
}

// record records the steps of a batch and uploads them. It returns nothing
// where that cannot be done: the answer is worth having without.
func (m measurer) record(ctx context.Context, s *measure.Session, r analysis.Request, batch int64) (id string, err error) {
	if m.upload == nil || s.Device.Type != "cuda" {
		return "", nil
	}
	err = analysis.Record(ctx, r, s, batch, func(path string) error {
		id, err = m.upload.Snapshot(ctx, path)
		return err
	})
	return id, err
}
