// Package trace is what a program asked of a device's allocator, in order:
// what a recording holds and what a prediction makes.
package trace

import "memorymark/internal/trace"

type (
	// Trace is a device's events, what was live before the first one, and the
	// segments at the end.
	Trace = trace.Trace
	// Event is one request, or one segment that came or went.
	Event = trace.Event
	// Action is what happened.
	Action = trace.Action
	// ID names an allocation; addresses are used again.
	ID = trace.ID
	// Lifetime is an allocation with where it begins and ends.
	Lifetime = trace.Lifetime
	// Category is what memory is for.
	Category = trace.Category
	// Comparison is where two traces part.
	Comparison = trace.Comparison
	// Frame is a line of a stack.
	Frame = trace.Frame
)

// The actions that programs look for most.
const (
	Alloc         = trace.Alloc
	FreeRequested = trace.FreeRequested
	FreeCompleted = trace.FreeCompleted
	SegmentAlloc  = trace.SegmentAlloc
	SegmentFree   = trace.SegmentFree
	OutOfMemory   = trace.OutOfMemory
)

// Compare finds the first request at which two traces part, and what each has
// that the other has not.
func Compare(a, b *Trace) *Comparison { return trace.Compare(a, b) }
