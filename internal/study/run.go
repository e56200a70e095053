package study

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"memorymark/internal/evidence"
	"memorymark/internal/predict"
)

// Options say what happens around the profiling of cells. The zero value only
// profiles.
type Options struct {
	// Journal keeps results, so that a run that was stopped continues where it
	// was; nil keeps nothing.
	Journal *Journal
	// Keep is called with each profile before its result counts as done, to
	// save what results do not hold. Calls for several cells may overlap.
	Keep func(c Cell, p *Profile, r *Result) error
	// Kept reports whether what Keep saved of a cell is still there; nil is
	// always. A result in the journal counts only with it.
	Kept func(c Cell, r *Result) bool
	// Progress is called after each cell, never twice at the same time.
	Progress func(RunProgress)
	// Around does the work of each cell, when and as it likes; nil does it at
	// once. An error of its own ends the run.
	Around func(ctx context.Context, work func() error) error
}

// RunProgress is how far a run has come.
type RunProgress struct {
	Cell        Cell // that was just done
	Done, Total int
	Resumed     int           // of those done, from the journal
	Elapsed     time.Duration // since the run began
	Left        time.Duration // about, at the pace so far
}

// Run profiles cells and returns their results in the same order. Predictions
// run on all cores; measurements one after the other, since they would take
// memory from each other. A cell that cannot be profiled gets a result that
// says why, and the others continue; the error is of what ends them all.
func Run(ctx context.Context, p Profiler, cells []Cell, o Options) ([]*Result, error) {
	r := &runner{Options: o, profiler: p, cells: cells, results: make([]*Result, len(cells)), began: time.Now()}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	todo := make(chan int)
	var running sync.WaitGroup
	for range min(atOnce(p, cells), max(len(cells), 1)) {
		running.Go(func() {
			for i := range todo {
				if err := r.one(ctx, i); err != nil {
					stop(err)
				}
			}
		})
	}
	for i := range cells {
		select {
		case todo <- i:
		case <-ctx.Done():
		}
	}
	close(todo)
	running.Wait()
	return r.results, context.Cause(ctx)
}

func atOnce(p Profiler, cells []Cell) int {
	if p.Engine() != evidence.Predicted {
		return 1
	}
	least := runtime.GOMAXPROCS(0)
	for _, c := range cells {
		if c.Workload != nil {
			least = min(least, predict.MaxConcurrent(c.Workload, true))
		}
	}
	return least
}

type runner struct {
	Options
	profiler Profiler
	cells    []Cell
	results  []*Result // by cell; each is written once
	began    time.Time

	lock          sync.Mutex
	done, resumed int
}

// one profiles a cell, or takes its result from the journal.
func (r *runner) one(ctx context.Context, i int) error {
	c := r.cells[i]
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.Err != nil {
		r.finish(i, &Result{Workload: c.Workload, Error: c.Err.Error()}, false)
		return nil //nolint:nilerr // it is in its result
	}
	if kept := r.Journal.find(c, r.profiler.Engine()); kept != nil && (r.Kept == nil || r.Kept(c, kept)) {
		kept.Workload = c.Workload
		r.finish(i, kept, true)
		return nil
	}
	work := func() error { return r.profile(ctx, i) }
	if r.Around != nil {
		return r.Around(ctx, work)
	}
	return work()
}

// profile profiles a cell and finishes it.
func (r *runner) profile(ctx context.Context, i int) error {
	c := r.cells[i]
	p, err := r.profiler.Profile(ctx, c)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		r.finish(i, &Result{Workload: c.Workload, Engine: r.profiler.Engine(), Error: err.Error()}, false)
		return nil //nolint:nilerr // it is in its result
	}
	result := NewResult(c, r.profiler.Engine(), p)
	if r.Keep != nil {
		err = r.Keep(c, p, result)
	}
	if err = errors.Join(err, r.Journal.add(c, result)); err != nil {
		return err
	}
	r.finish(i, result, false)
	return nil
}

func (r *runner) finish(i int, result *Result, resumed bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.results[i] = result
	r.done++
	if resumed {
		r.resumed++
	}
	if r.Progress == nil {
		return
	}
	now := RunProgress{Cell: r.cells[i], Done: r.done, Total: len(r.cells), Resumed: r.resumed, Elapsed: time.Since(r.began)}
	if fresh := r.done - r.resumed; fresh > 0 {
		now.Left = now.Elapsed / time.Duration(fresh) * time.Duration(now.Total-now.Done)
	}
	r.Progress(now)
}
