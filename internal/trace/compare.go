package trace

import "slices"

// This file compares what two programs asked of the allocator: every allocation
// and every free, in order. Addresses and segments are ignored.
//
// Allocations correspond if they are made at corresponding moments with equal
// sizes, and a free corresponds to a free of the corresponding allocation.
//
// A run of frees, with no allocation in between, is compared as a set: once it
// is over, the allocator is in the same state whatever its order, because
// neighbouring free blocks merge. The order of some runs is arbitrary: autocast
// drops its casts in the order of a hash map of CPU addresses (cached_casts,
// aten/src/ATen/autocast_mode.cpp).
//
// After a difference the comparison continues at the nearest position from
// which both match again; see align.go.

// Comparison is where two traces diverge and realign.
type Comparison struct {
	// Requests are the allocations and frees of each, runs of frees in the
	// order in which they were compared.
	Requests [2][]AllocatorRequest
	Equal    int // requests that correspond, in all
	Before   int // of these, the ones before the first difference
	// Stretches are where the traces differ, in order. Requests after the end
	// of the other trace are not among them, but in Beyond.
	Stretches []Stretch
	Beyond    [2]int // requests after the end of the other
	// Reordered are the events of the second trace from which on a run of frees
	// has another order than in the first.
	Reordered []int
}

// Stretch is a range where two traces differ: the requests of each that have no
// counterpart. One of the two may be empty.
type Stretch struct{ From, To [2]int }

// AllocatorRequest is an allocation, or a free that has completed.
type AllocatorRequest struct {
	Event int // index into the trace's events
	ID    ID
	Size  int64
	Free  bool
	Stack StackID
}

// Differ reports whether the traces do different things as far as both go.
func (c *Comparison) Differ() bool { return len(c.Stretches) > 0 }

// Requests returns the allocations and frees of a trace.
func (t *Trace) Requests() []AllocatorRequest {
	sizes := t.sizes()
	var out []AllocatorRequest
	for i := range t.Events {
		e := &t.Events[i]
		if e.Action == Alloc || e.Action == FreeCompleted {
			out = append(out, AllocatorRequest{Event: i, ID: e.ID, Size: sizes[e.ID], Free: e.Action == FreeCompleted, Stack: e.Stack})
		}
	}
	return out
}

// Compare aligns the requests of two traces.
func Compare(a, b *Trace) *Comparison {
	c := comparer{side: [2][]AllocatorRequest{a.Requests(), b.Requests()}}
	c.out.Requests = c.side
	for s, t := range []*Trace{a, b} {
		c.partner[s] = slices.Repeat([]ID{None}, t.Allocations())
	}
	for c.run() {
		if len(c.out.Stretches) == 0 {
			c.out.Before = c.out.Equal
		}
		from := c.at
		c.skip()
		c.out.Stretches = append(c.out.Stretches, Stretch{from, c.at})
	}
	if len(c.out.Stretches) == 0 {
		c.out.Before = c.out.Equal
	}
	for s := range c.side {
		c.out.Beyond[s] = len(c.side[s]) - c.at[s]
	}
	return &c.out
}

type comparer struct {
	side    [2][]AllocatorRequest
	at      [2]int  // the requests that are compared next
	partner [2][]ID // of each allocation, the one that corresponds, or None
	out     Comparison
}

// run advances as long as the traces match, and reports whether they differ
// then; otherwise one of them has ended.
func (c *comparer) run() bool {
	for c.at[0] < len(c.side[0]) && c.at[1] < len(c.side[1]) {
		x, y := &c.side[0][c.at[0]], &c.side[1][c.at[1]]
		switch {
		case x.Free && y.Free && c.correspond(x, y):
		case x.Free && y.Free:
			if !c.set() {
				return true
			}
			continue
		case !x.Free && !y.Free && x.Size == y.Size:
			c.partner[0][x.ID], c.partner[1][y.ID] = y.ID, x.ID
		default:
			return true
		}
		c.equal(1)
	}
	return false
}

// equal counts requests that correspond.
func (c *comparer) equal(n int) {
	c.at[0] += n
	c.at[1] += n
	c.out.Equal += n
}

// correspond reports whether two frees are of corresponding allocations.
// Allocations made in a differing stretch, or before the recording, have no
// counterpart; for them the size decides.
func (c *comparer) correspond(x, y *AllocatorRequest) bool {
	if p := c.partner[0][x.ID]; p != None || c.partner[1][y.ID] != None {
		return p == y.ID
	}
	return x.Size == y.Size
}

// set compares the rest of a run of frees as a set and reports whether it is
// the same, up to where a trace ends in mid-run. Common frees are moved before
// the others, and counted.
func (c *comparer) set() bool {
	x, y := c.frees(0), c.frees(1)
	begin := y[0].Event
	common := c.common(x, y)
	c.equal(common)
	if common == len(x) && common == len(y) {
		c.out.Reordered = append(c.out.Reordered, begin)
		return true
	}
	return common == len(x) && c.at[0] == len(c.side[0]) || common == len(y) && c.at[1] == len(c.side[1])
}

// frees returns the rest of a side's run of frees.
func (c *comparer) frees(side int) []AllocatorRequest {
	rest := c.side[side][c.at[side]:]
	if end := slices.IndexFunc(rest, func(r AllocatorRequest) bool { return !r.Free }); end >= 0 {
		return rest[:end]
	}
	return rest
}

// common puts the frees that correspond at the front of two runs and returns
// how many there are.
func (c *comparer) common(x, y []AllocatorRequest) int {
	byID := make(map[ID]int, len(y))
	bySize := make(map[int64][]int) // of those without a counterpart
	for j, r := range y {
		if byID[r.ID] = j; c.partner[1][r.ID] == None {
			bySize[r.Size] = append(bySize[r.Size], j)
		}
	}
	inX, inY := make([]bool, len(x)), make([]bool, len(y))
	for i, r := range x {
		j, ok := byID[c.partner[0][r.ID]]
		if c.partner[0][r.ID] == None {
			if list := bySize[r.Size]; len(list) > 0 {
				j, ok, bySize[r.Size] = list[0], true, list[1:]
			}
		}
		if ok {
			inX[i], inY[j] = true, true
		}
	}
	partition(x, inX)
	return partition(y, inY)
}

// partition moves the chosen requests to the front, without changing the order
// otherwise, and returns how many there are.
func partition(list []AllocatorRequest, chosen []bool) int {
	var front, rest []AllocatorRequest
	for i, r := range list {
		if chosen[i] {
			front = append(front, r)
		} else {
			rest = append(rest, r)
		}
	}
	copy(list[copy(list, front):], rest)
	return len(front)
}
