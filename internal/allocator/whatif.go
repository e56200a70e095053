package allocator

import (
	"errors"
	"fmt"

	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
)

// WhatIf is what a what-if run changes. Nil and zero leave things as they were.
type WhatIf struct {
	Settings *trace.Settings
	Limit    int64
	// GraphPool is allocated and freed again where the first request of a private pool follows, as the setting
	// triton.cudagraph_initial_mempool_allocation_gb of TorchInductor does (torch/_inductor/cudagraph_trees.py, 2.14):
	// the graphs then share one segment.
	GraphPool int64
	Until     int // stop before this event, 0 for the end
	Work      *workbudget.Budget
}

// WhatIf runs the recorded requests under other settings or another limit. It
// stops at the first request that cannot be met; and at a recorded
// out-of-memory error, after trying its request, since the program went
// differently from there.
func (r *Replay) WhatIf(c WhatIf) *Outcome { return r.whatIf(c, newWalkBudget(len(r.trace.Events))) }

func (r *Replay) whatIf(c WhatIf, budget *walkBudget) *Outcome {
	settings := r.trace.Settings
	if c.Settings != nil {
		settings = *c.Settings
	}
	d := &countingDriver{modelDriver: *newModelDriver(lowestAddress(r.trace))}
	p := r.newRun(newAllocator(d, Options{Settings: settings, Limit: c.Limit, Streams: r.trace.Streams}))
	defer budget.charge(p.a)
	if err := p.begin(c); err != nil {
		return p.fail(0, err, d)
	}
	emptied := r.emptied
	for i := range r.trace.Events {
		if c.Until > 0 && i >= c.Until {
			p.out.Events = i
			break
		}
		if budget.spent(p.a) {
			p.out.Events, p.out.Stopped = i, errTooMuchWork
			break
		}
		if i%eventsAtATime == 0 {
			if p.out.Stopped = c.Work.Spend(eventsAtATime); p.out.Stopped != nil {
				p.out.Events = i
				break
			}
		}
		if len(emptied) > 0 && emptied[0] == i {
			emptied = emptied[1:]
			p.a.releaseCachedBlocks()
		}
		if err := p.primeGraphPool(i, &c); err != nil {
			return p.fail(i, err, d)
		}
		if err := p.step(i); err != nil {
			return p.fail(i, err, d)
		}
		p.note(i, i+1)
		if r.trace.Events[i].Action == trace.OutOfMemory {
			p.out.Events = i + 1
			break
		}
	}
	out := p.finish()
	out.SegmentBytes = d.asked
	return out
}

// begin puts the allocator into the state in which the recording began. Where
// placement itself would have been different, what was live is allocated again,
// in the order of its addresses: a recording does not show the real order.
func (r *run) begin(c WhatIf) error {
	if c.Settings == nil || placesAlike(c.Settings, &r.trace.Settings) {
		r.seed(r.initial)
		if c.Limit > 0 && r.a.stats.ReservedBytes[All].Current > c.Limit {
			r.a.releaseCachedBlocks()
		}
		if held := r.a.stats.ReservedBytes[All].Current; c.Limit > 0 && held > c.Limit {
			return &OutOfMemoryError{Allocated: r.a.stats.AllocatedBytes[All].Current, Reserved: held, Limit: c.Limit}
		}
		return nil
	}
	for _, s := range r.initial {
		for _, b := range s.Blocks {
			if b.State == trace.Inactive {
				continue
			}
			h, err := r.a.malloc(request{Size: b.Requested, Stream: s.Stream, Pool: s.Pool, ID: b.ID, Stack: b.Stack})
			if err != nil {
				return err
			}
			r.handles[b.ID] = h
			if b.State == trace.PendingFree {
				r.a.freeRequested(h)
			}
		}
	}
	return nil
}

// placesAlike reports whether two settings hand out the same addresses as long
// as memory lasts.
func placesAlike(a, b *trace.Settings) bool {
	return a.MaxSplitSize == b.MaxSplitSize && a.ExpandableSegments == b.ExpandableSegments &&
		a.RoundupDivisions == b.RoundupDivisions
}

// primeGraphPool allocates and frees c.GraphPool before the first request of a private pool.
func (r *run) primeGraphPool(i int, c *WhatIf) error {
	e := &r.trace.Events[i]
	if c.GraphPool == 0 || e.Action != trace.Alloc {
		return nil
	}
	pool := r.poolAt(i)
	if pool == (trace.PoolID{}) {
		return nil
	}
	h, err := r.a.malloc(request{Size: c.GraphPool, Stream: e.Stream, Pool: pool, ID: trace.None, Stack: e.Stack})
	if err == nil {
		r.a.free(h)
		c.GraphPool = 0
	}
	return err
}

func (r *run) fail(event int, err error, d *countingDriver) *Outcome {
	if !errors.As(err, &r.out.Failed) {
		panic(fmt.Sprintf("allocator: %v is not an out-of-memory error", err))
	}
	r.out.Events = event
	out := r.finish()
	out.SegmentBytes = d.asked
	return out
}

// countingDriver adds up what is requested of it.
type countingDriver struct {
	modelDriver
	asked int64
}

func (d *countingDriver) malloc(size int64) (uint64, bool) {
	d.asked += size
	return d.modelDriver.malloc(size)
}

func (d *countingDriver) mapPages(addr uint64, size int64) bool {
	d.asked += size
	return d.modelDriver.mapPages(addr, size)
}

// lowestAddress returns an address below everything a trace names.
func lowestAddress(t *trace.Trace) uint64 {
	low := uint64(1) << 46
	for _, s := range t.Final {
		low = min(low, s.Addr)
	}
	for i := range t.Events {
		if e := &t.Events[i]; e.Action.IsSegment() {
			low = min(low, e.Addr)
		}
	}
	return low &^ (regionBytes - 1)
}

// Trial is one what-if: a change of settings and what it would have taken.
type Trial struct {
	Settings  trace.Settings
	Unlimited *Outcome // without any limit
	Needs     int64    // the smallest limit under which every request is met
}

// CardFit is whether a run fits a card.
type CardFit int

// The verdicts. A recording bounds the capacity it ran into from both sides;
// what needs an amount in between cannot be told.
const (
	DoesNotFit CardFit = iota
	MayFit
	Fits
)

// On says whether the trial fits into what a recording shows of the capacity.
func (t *Trial) On(c Capacity) CardFit {
	switch {
	case t.Needs <= c.AtLeast || c.Below == 0:
		return Fits
	case t.Needs < c.Below:
		return MayFit
	default:
		return DoesNotFit
	}
}

// Alternatives runs the recorded requests under the recorded settings, and
// then with each setting that people are told to try, one at a time, and finds
// out how much memory each needs. It returns none if that takes too much work.
func (r *Replay) Alternatives() []Trial {
	trials := []Trial{{Settings: r.trace.Settings}}
	try := func(change func(*trace.Settings)) {
		s := r.trace.Settings
		if change(&s); s.String() != r.trace.Settings.String() {
			trials = append(trials, Trial{Settings: s})
		}
	}
	try(func(s *trace.Settings) { s.ExpandableSegments = true })
	try(func(s *trace.Settings) { s.MaxSplitSize = 128 << 20 })
	try(func(s *trace.Settings) { s.GCThreshold = 0.8 })
	try(func(s *trace.Settings) {
		for i := range s.RoundupDivisions {
			s.RoundupDivisions[i] = 8
		}
	})
	budget := newWalkBudget(len(r.trace.Events))
	for i := range trials {
		t := &trials[i]
		t.Unlimited = r.whatIf(WhatIf{Settings: &t.Settings}, budget)
		t.Needs = r.smallestLimit(t, budget)
		if budget.left < 0 {
			return nil
		}
	}
	return trials
}

// smallestLimit finds the least that a limit may be, in steps of the size in
// which the allocator requests memory. Fitting is not monotonic to the last
// step, so the answer is one under which the run was seen to fit.
func (r *Replay) smallestLimit(t *Trial, budget *walkBudget) int64 {
	const step = roundLarge
	low := t.Unlimited.Stats.AllocatedBytes[All].Peak / step // too little, or just enough
	high := (t.Unlimited.Stats.ReservedBytes[All].Peak + largeBuffer) / step
	if !r.fits(t, high*step, budget) {
		high *= 2 // R11 counts whole segments where expandable ones map less
	}
	for low+1 < high {
		mid := (low + high) / 2
		if r.fits(t, mid*step, budget) {
			high = mid
		} else {
			low = mid
		}
	}
	return high * step
}

func (r *Replay) fits(t *Trial, limit int64, budget *walkBudget) bool {
	return r.whatIf(WhatIf{Settings: &t.Settings, Limit: limit}, budget).Fits()
}
