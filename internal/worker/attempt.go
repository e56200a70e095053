package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"memorymark/internal/job"
)

// Why an attempt is stopped, in addition to job.ErrCancelled and job.ErrLost.
var (
	errTooLong  = errors.New("the job took too long")
	errDraining = errors.New("the worker was told to stop")
)

// attempt is a job that a slot works on.
type attempt struct {
	job  job.Job
	stop context.CancelCauseFunc
	lost bool // the lease has ended; guarded by the worker's mu
}

// outcome is what a Runner returned.
type outcome struct {
	result json.RawMessage
	err    error
}

// work does one job and reports it. It returns an error only if the worker
// cannot take another.
func (w *Worker) work(ctx context.Context, slot int, j job.Job) error {
	log := w.Log.With("job", j.ID, "card", w.Slots[slot].Card.ID, "attempt", j.Attempt)
	log.Info("job taken")
	// The job outlives the worker's context: a drain gives it time.
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	w.set(slot, &attempt{job: j, stop: stop})
	defer w.set(slot, nil)
	limit := time.AfterFunc(w.Limit, func() { stop(errTooLong) })
	defer limit.Stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(w.Drain, func() { stop(errDraining) }) })()

	news := newReporter(w.server, w.id, j, log)
	done := make(chan outcome, 1)
	go func() { done <- run(running, w.Slots[slot].Run, j, news, log) }()
	var o outcome
	select {
	case o = <-done:
	case <-running.Done():
		select {
		case o = <-done:
		case <-time.After(w.stop):
			w.conclude(running, news, j, outcome{err: context.Cause(running)}, log)
			return &StuckError{Job: j.ID}
		}
	}
	w.conclude(running, news, j, o, log)
	return nil
}

// run calls a Runner and turns a panic into an error.
func run(ctx context.Context, f Runner, j job.Job, news *reporter, log *slog.Logger) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic", "value", p, "stack", string(debug.Stack()))
			o.err = fmt.Errorf("the worker has a bug: %v", p)
		}
	}()
	o.result, o.err = f(ctx, j.Payload, news.say)
	return o
}

// conclude says what came of an attempt.
func (w *Worker) conclude(running context.Context, news *reporter, j job.Job, o outcome, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(running), reportTime)
	defer cancel()
	news.flush()
	e := job.Ending{Job: j.ID, Attempt: j.Attempt}
	switch cause := context.Cause(running); {
	case o.err == nil && (len(o.result) > job.MaxPayload || !json.Valid(o.result)):
		e.To, e.Reason = job.Failed, fmt.Sprintf("the result of %d bytes is not JSON or has more than %d", len(o.result), job.MaxPayload)
	case o.err == nil:
		// What is done is done, even if it was told to stop.
		e.To, e.Result = job.Succeeded, o.result
	case errors.Is(cause, job.ErrCancelled) || errors.Is(cause, job.ErrLost):
		log.Info("job stopped", "reason", cause)
		return
	case errors.Is(cause, errDraining):
		e.To, e.Reason = job.Queued, "worker "+w.id+" ("+w.Host+") was told to stop"
	case errors.Is(cause, errTooLong):
		e.To, e.Reason = job.Failed, fmt.Sprintf("stopped after %v, this worker's time limit for a job", w.Limit)
	default:
		e.To, e.Reason = job.Failed, job.ShortReason(o.err.Error())
	}
	if err := insist(ctx, func(ctx context.Context) error { return w.server.End(ctx, w.id, e) }); err != nil {
		log.Warn("job not reported", "error", err)
		return
	}
	log.Info("job done", "error", e.Reason)
}
