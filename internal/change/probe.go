package change

import (
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/steptime"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Prober finds out what the steps of a trial take. Its error says that they cannot be
// run, not that they do not fit.
type Prober func(t Trial) (*Steps, error)

// Trial is a workload that may fit.
type Trial struct {
	Workload *workload.Workload // with the limit
	Margin   bytesize.Bytes     // that is to be left of it
	Changes  []Change           // that made it, none if it is as it was
}

// Steps are what the steps of a workload take.
type Steps struct {
	Verdict     predict.Verdict
	Peak        allocator.Usage // of each kind the most over all steps; zero if that is not known
	StepSeconds float64         // of an update; 0 if that is not known
	StepRange   *steptime.Range // in which they lie in four of five cases, where that is needed
	Reason      string          // why they do not fit
	Notes       []string        // what to know of how they ran
}

// Predicting returns the probe that predicts steps on a card.
func Predicting(card *gpu.Card, e *workbudget.Budget) Prober {
	return func(t Trial) (*Steps, error) {
		sim, err := predict.Run(t.Workload, card, predict.Options{Budget: e})
		if err != nil {
			return nil, err
		}
		out := &Steps{Verdict: sim.Verdict(t.Margin), Peak: sim.Peak(), StepSeconds: sim.StepSeconds()}
		if oom := sim.OutOfMemory(); oom != nil {
			out.Reason = oom.Reason()
		}
		return out, nil
	}
}

// FailedSet is a set whose steps could not be run.
type FailedSet struct {
	Changes []Change
	Err     error
}

// probe runs the steps of an attempt, if there is a probe left for it; nil if it does
// not fit.
func (s *search) probe(a attempt) (*Set, error) {
	switch {
	case !s.worthProbe(a):
		return nil, nil //nolint:nilnil // it is left out
	case s.probed == s.Probes:
		s.Untried++
		return nil, nil //nolint:nilnil // it is left out
	}
	s.probed++
	set, err := s.simulate(a)
	switch {
	case s.Work.Err() != nil:
		return nil, s.Work.Err()
	case err != nil:
		s.failed = append(s.failed, a.candidate)
		s.Failed = append(s.Failed, FailedSet{s.made(a), err})
		return nil, nil //nolint:nilerr,nilnil // the answer says that it failed
	case set.Verdict == predict.DoesNotFit:
		return nil, nil //nolint:nilnil // it does not fit, and nothing is wrong
	}
	return set, nil
}

// worthProbe reports whether an attempt may fit where its parts do not: its changes go
// together, none of its parts failed to run, and it adds to no other change one that
// moves the edge a little.
func (s *search) worthProbe(a attempt) bool {
	if _, err := s.workload(s.draft(s.figures(), a)); err != nil {
		return false
	}
	has := func(r Row) bool {
		return slices.ContainsFunc(a.rows, func(own Row) bool { return own.Label == r.Label })
	}
	for _, f := range s.failed {
		if len(f.rows) > 0 && !slices.ContainsFunc(f.rows, func(r Row) bool { return !has(r) }) {
			return false
		}
	}
	return len(s.made(a)) == 1 || !slices.ContainsFunc(a.rows, func(r Row) bool { return r.Edge })
}

// probeSplits tries splits of the batch as split does, from the smallest up as long as
// they fit: it says with one probe that none does.
func (s *search) probeSplits(c candidate) (best *Set, err error) {
	for _, a := range s.splits(c) {
		set, err := s.probe(a)
		if err != nil || set == nil {
			return best, err
		}
		if best != nil && set.Verdict == predict.Tight && best.Verdict == predict.Fits {
			return best, nil
		}
		best = set
	}
	return best, nil
}
