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

// Why an attempt is stopped, beside job.ErrCancelled and job.ErrLost.
var (
	errTooLong  = errors.New("the job took too long")
	errDraining = errors.New("the worker was told to stop")
)

// outcome is what a Runner returned.
type outcome struct {
	result json.RawMessage
	err    error
}

// work does one job and reports it. It returns an error only if the worker
// cannot take another.
func (w *worker) work(ctx context.Context, slot int, lease *job.Lease) error {
	j := lease.Job()
	log := w.Log.With("job", j.ID, "card", w.Slots[slot].Card.ID, "attempt", j.Attempt)
	log.Info("job taken")
	w.set(slot, j.ID)
	defer w.set(slot, "")

	// The job outlives the worker's context: a drain gives it time.
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	limit := time.AfterFunc(w.Limit, func() { stop(errTooLong) })
	defer limit.Stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(w.Drain, func() { stop(errDraining) }) })()
	beating, stopBeating := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBeating()
	go w.beat(beating, lease, stop, log)

	done := make(chan outcome, 1)
	go func() { done <- run(running, w.Slots[slot].Run, lease, log) }()
	var o outcome
	select {
	case o = <-done:
	case <-running.Done():
		select {
		case o = <-done:
		case <-time.After(w.stop):
			w.conclude(running, lease, outcome{err: context.Cause(running)}, log)
			return &StuckError{Job: j.ID}
		}
	}
	w.conclude(running, lease, o, log)
	return nil
}

// run calls a Runner and turns a panic into an error.
func run(ctx context.Context, f Runner, lease *job.Lease, log *slog.Logger) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic", "value", p, "stack", string(debug.Stack()))
			o.err = fmt.Errorf("the worker has a bug: %v", p)
		}
	}()
	o.result, o.err = f(ctx, lease.Job().Payload, func(data json.RawMessage) {
		if err := lease.Progress(data); err != nil {
			log.Warn("progress", "error", err)
		}
	})
	return o
}

// beat keeps the lease, and stops the attempt when there is no use in it.
func (w *worker) beat(ctx context.Context, lease *job.Lease, stop context.CancelCauseFunc, log *slog.Logger) {
	every := w.link.Lease() / 3
	tick := time.NewTicker(every)
	defer tick.Stop()
	cancelled, leave, err := lease.Cancelled()
	if err != nil {
		log.Warn("listen for cancelling", "error", err)
	} else {
		defer leave()
	}
	for {
		once, cancel := context.WithTimeout(ctx, every)
		err := lease.Beat(once)
		cancel()
		switch {
		case errors.Is(err, job.ErrCancelled) || errors.Is(err, job.ErrLost):
			stop(err)
			return
		case err != nil && ctx.Err() == nil:
			// The work goes on: if nobody else takes the job, it still counts.
			log.Warn("beat", "error", err)
		}
		select {
		case <-tick.C:
		case <-cancelled:
			stop(job.ErrCancelled)
			return
		case <-ctx.Done():
			return
		}
	}
}

// conclude says what came of an attempt.
func (w *worker) conclude(running context.Context, lease *job.Lease, o outcome, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(running), reportTime)
	defer cancel()
	var err error
	switch cause := context.Cause(running); {
	case o.err == nil:
		// What is done is done, even if somebody wanted it to stop.
		err = lease.Succeed(ctx, o.result)
	case errors.Is(cause, job.ErrCancelled):
		err = lease.Drop()
	case errors.Is(cause, job.ErrLost):
		err = cause
	case errors.Is(cause, errDraining):
		err = lease.GiveBack(ctx, "worker "+w.link.ID()+" ("+w.Host+") was told to stop")
	case errors.Is(cause, errTooLong):
		err = lease.Fail(ctx, fmt.Sprintf("stopped after %v, this worker's time limit for a job", w.Limit))
	default:
		err = lease.Fail(ctx, o.err.Error())
	}
	if err != nil {
		log.Warn("job not reported", "error", err)
		return
	}
	log.Info("job done", "error", o.err)
}
