package plan

import (
	"context"
	"sync"
	"sync/atomic"
)

// inParallel calls a function for each of so many numbers, so many at the same
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

// piece runs a part when it is its turn.
func (q *Question) piece(ctx context.Context, do func() error) error {
	if q.Piece == nil {
		return do()
	}
	return q.Piece(ctx, do)
}
