package allocator

import "errors"

// errTooMuchWork says that a simulation was given up. PyTorch walks over its
// free memory for some requests, and so does the simulation; a recording made
// for it can turn that into hours.
var errTooMuchWork = errors.New("the recording is too fragmented to simulate: searching its free memory would take too long")

// walkBudget is how many blocks the walks of one question may look at. A run
// without them costs as much for an event as a hundred of these.
type walkBudget struct{ left int64 }

const (
	minWalk      = 10_000_000
	walkPerEvent = 200
)

func newWalkBudget(events int) *walkBudget { return &walkBudget{minWalk + walkPerEvent*int64(events)} }

// spent reports whether an allocator has used the budget up.
func (b *walkBudget) spent(a *cachingAllocator) bool { return a.work > b.left }

// charge takes what an allocator used.
func (b *walkBudget) charge(a *cachingAllocator) { b.left -= a.work }
