package plan

import (
	"context"
	"sync"
	"sync/atomic"

	"memorymark/internal/predict"
)

// inParallel calls a function for each of n numbers, limit of them at the same
// time, until the context ends or one fails.
func inParallel(ctx context.Context, atOnce, n int, do func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wait sync.WaitGroup
	for range min(atOnce, n) {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil || failed.Load() != nil {
					return
				}
				if err := do(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wait.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// atOnce is how many simulations may run at the same time. Runs of PyTorch take turns.
func (p *planner) atOnce() int {
	if p.runs != nil {
		return 1
	}
	return predict.MaxConcurrent(p.base, false)
}

// piece runs a part when it is its turn.
func (q *Question) piece(ctx context.Context, do func() error) error {
	if q.Piece == nil {
		return do()
	}
	return q.Piece(ctx, do)
}
