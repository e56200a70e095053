package allocator

import "memorymark/internal/trace"

// Trial is one what-if: a change of settings and what it would have taken.
type Trial struct {
	Settings  trace.Settings
	Unlimited *Outcome // without any limit
	Needs     int64    // the smallest limit under which every request is met
}

// Verdict is whether a run fits a card.
type Verdict int

// The verdicts. A recording bounds the capacity it ran into from both sides;
// what needs an amount in between cannot be told.
const (
	DoesNotFit Verdict = iota
	MayFit
	Fits
)

// On says whether the trial fits into what a recording shows of the capacity.
func (t *Trial) On(c Capacity) Verdict {
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
	budget := newBudget(len(r.trace.Events))
	for i := range trials {
		t := &trials[i]
		t.Unlimited = r.whatIf(Change{Settings: &t.Settings}, budget)
		t.Needs = r.smallestLimit(t, budget)
		if budget.left < 0 {
			return nil
		}
	}
	return trials
}

// smallestLimit finds the least that a limit may be, in steps of the size in
// which the allocator asks for memory. Fitting is not monotonic to the last
// step, so the answer is one under which the run was seen to fit.
func (r *Replay) smallestLimit(t *Trial, budget *budget) int64 {
	const step = segmentRound
	low := t.Unlimited.Stats.AllocatedBytes[All].Peak / step // too little, or just enough
	high := (t.Unlimited.Stats.ReservedBytes[All].Peak + largeSegment) / step
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

func (r *Replay) fits(t *Trial, limit int64, budget *budget) bool {
	return r.whatIf(Change{Settings: &t.Settings, Limit: limit}, budget).Fits()
}
