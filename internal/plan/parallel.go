package plan

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// inParallel calls a function for each of so many numbers, on every core, until
// the context ends.
func inParallel(ctx context.Context, n int, do func(i int)) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				do(i)
			}
		})
	}
	wait.Wait()
	return ctx.Err()
}
