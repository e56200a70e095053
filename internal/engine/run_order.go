package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/workbudget"
)

// RunOrder answers an order and says how it goes. It is what a worker runs.
func (r *Runner) RunOrder(ctx context.Context, payload json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
	order, err := ParseOrder(payload)
	if err != nil {
		return nil, err
	}
	q, err := order.Request()
	if err != nil {
		return nil, err
	}
	q.Work = workbudget.New(workbudget.PerQuestion, ctx.Err)
	if order.Engine.RunsSteps() { // which takes longer than any prediction next to it
		q.Work = workbudget.New(math.MaxInt64, ctx.Err)
	}
	tell := func(event any) {
		if data, err := json.Marshal(event); err == nil {
			progress(data)
		}
	}
	var a *analysis.Answer
	switch {
	case order.Code != nil:
		a, err = r.codeOrder(ctx, order.Code, q, tell)
	case order.Engine == evidence.Predicted:
		a, err = predictAloud(q, tell)
	case order.Engine == evidence.Emulated:
		a, err = r.emulateOrder(ctx, q, tell)
	case r.Device == "":
		err = fmt.Errorf("this worker only predicts")
	default:
		a, err = r.measureOrder(ctx, q, tell)
	}
	if no := analysis.Refusal(err); no != nil { // that nothing trains is an answer, too
		a, err = no, nil
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

// message is an event in words.
func message(format string, args ...any) MeasuringEvent {
	return MeasuringEvent{Kind: Message, Message: fmt.Sprintf(format, args...)}
}

// predictAloud predicts, and says what it looked at.
func predictAloud(q analysis.Request, tell func(any)) (*analysis.Answer, error) {
	tell(message("predicting %s on %s", q.Workload.Name(), gpu.WithArticle(q.Card.Name)))
	began := time.Now()
	a, err := analysis.Predict(q)
	if no := analysis.Refusal(err); no != nil {
		a, err = no, nil
	}
	if err != nil {
		return nil, err
	}
	for _, x := range a.Results {
		tell(struct {
			Kind EventKind `json:"kind"`
			analysis.Result
		}{Tried, x})
	}
	tell(message("predicted in %v", time.Since(began).Round(time.Millisecond)))
	return a, nil
}

// measureOrder measures, and records the largest batch. The session ends with
// the order: until the next one, the machine belongs to others.
func (r *Runner) measureOrder(ctx context.Context, q analysis.Request, tell func(any)) (a *analysis.Answer, err error) {
	m := Measurement{Progress: func(e MeasuringEvent) { tell(e) }}
	spares := 0
	if predictable(q, nil) {
		m.Ahead, spares = LookAhead(q), Spares(q)
	}
	err = r.steps(ctx, evidence.Measured, q, m, spares, func(m Measurement) error {
		defer r.endSession("")
		if a, err = Measure(ctx, q, m); err != nil {
			return err
		}
		if a.Snapshot, err = r.record(ctx, q, m, a.OptimalBatch); err != nil {
			tell(message("there is no recording of the steps: %v", err))
		}
		return nil
	})
	return a, err
}

// emulateOrder emulates. The session is kept for the next order: no card waits
// for it.
func (r *Runner) emulateOrder(ctx context.Context, q analysis.Request, tell func(any)) (*analysis.Answer, error) {
	return r.Answer(ctx, evidence.Emulated, q, Measurement{Progress: func(e MeasuringEvent) { tell(e) }})
}

// record records the steps of a batch and uploads them. It returns nothing
// where that cannot be done: the answer is worth having without.
func (r *Runner) record(ctx context.Context, q analysis.Request, m Measurement, batch int64) (id string, err error) {
	if r.Upload == nil || m.Session.Device.Type != "cuda" {
		return "", nil
	}
	err = Record(ctx, q, m.Session, batch, func(path string) error {
		id, err = r.Upload(ctx, path)
		return err
	})
	return id, err
}
