package allocator

import "errors"

// ErrTooMuchWork says that a simulation was given up. PyTorch walks over its
// free memory for some requests, and so does the simulation; a recording made
// for it can turn that into hours.
var ErrTooMuchWork = errors.New("the recording is too fragmented to simulate: searching its free memory would take too long")

// budget is how many blocks the walks of one question may look at. A run
// without them costs as much for an event as a hundred of these.
type budget struct{ left int64 }

const (
	workAnyway   = 10_000_000
	workPerEvent = 200
)

func newBudget(events int) *budget { return &budget{workAnyway + workPerEvent*int64(events)} }

// spent reports whether an allocator has used the budget up.
func (b *budget) spent(a *Allocator) bool { return a.work > b.left }

// charge takes what an allocator used.
func (b *budget) charge(a *Allocator) { b.left -= a.work }
