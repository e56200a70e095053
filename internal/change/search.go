package change

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Question asks how to make a workload fit a card.
type Question struct {
	Draft workload.Draft // with the batch as it is; the samples of an update stay
	Card  *gpu.Card
	Limit bytesize.Bytes // the most that PyTorch may hold
	// Margin is what must be left of the limit; sets that leave less are tight.
	Margin bytesize.Bytes
	Given  []string // keys that stay as they are
	Full   bool     // train all weights: no adapters
	Most   int      // how many keys a set may change; 0 for any number, and what comes nearest
	Work   *workbudget.Budget
	// Forms are the programs that a set of changes must fit as; none for the draft as
	// it is. The figures are those of the first.
	Forms []Form
	// Probe runs the steps of a family that is not modelled, Probes times at the most.
	// Nil predicts them, as often as it takes.
	Probe  Prober
	Probes int
}

// Set is a set of changes with which a workload trains: its verdict is Fits or Tight.
type Set struct {
	Steps
	Changes  []Change
	Trains   Trains
	Workload *workload.Workload
	cost     Cost
}

// Findings are what a search found.
type Findings struct {
	// Sets are the smallest with which the workload trains, by what they train:
	// nothing but memory and time changes, or the optimizer does, or adapters are
	// trained. The preferred comes first.
	Sets []Set
	// Nearest needs the least, where there is no set that fits. Probes do not find it:
	// what steps that ran out of memory need is not known.
	Nearest *Set
	// Failed are sets whose steps a probe could not run, and Untried is how many sets
	// there were no probes left for.
	Failed  []FailedSet
	Untried int
}

// Least finds the smallest sets of changes with which a workload trains: every
// single change that is enough, else every pair, and so on. It does so for each kind
// of training apart, so that another kind with fewer changes hides none. A set that
// leaves less than the margin does not end the search.
func Least(q Question) (*Findings, error) {
	s, err := newSearch(q)
	if err != nil {
		return nil, err
	}
	kinds := s.kinds()
	for n, most := 1, s.maxKeys(kinds); n <= most; n++ {
		for i, kind := range kinds {
			found, err := s.leastOf(kind, n)
			switch {
			case err != nil:
				return nil, err
			case !found:
				continue
			}
			kinds[i] = nil
			if i == 0 || s.Probe != nil {
				most = n // another training with more changes is of no use
			}
		}
	}
	slices.SortStableFunc(s.Sets, prefer)
	if len(s.Sets) == 0 && q.Most == 0 && q.Probe == nil {
		if err := s.findNearest(); err != nil {
			return nil, err
		}
	}
	return &s.Findings, nil
}

// prefer orders sets: those with a margin first, then by what they cost in quality,
// then by how long a step takes.
func prefer(a, b Set) int {
	return cmp.Or(
		rank(a.Verdict)-rank(b.Verdict), int(a.cost-b.cost),
		cmp.Compare(a.StepSeconds, b.StepSeconds),
	)
}

func rank(v predict.Verdict) int {
	return slices.Index([]predict.Verdict{predict.Fits, predict.Tight, predict.DoesNotFit}, v)
}

// search is one search.
type search struct {
	Question
	Findings
	base     *workload.Workload
	outlines map[string]*predict.Outline // by draft without its batch; nil for those that cannot be predicted

	nearest attempt
	least   bytesize.Bytes // that nearest needs, 0 before there is one

	run    Prober
	probed int
	failed []candidate
}

func newSearch(q Question) (*search, error) {
	s := &search{Question: q, outlines: make(map[string]*predict.Outline), run: q.Probe}
	if s.run == nil {
		s.run = Predicting(q.Card, q.Work)
	}
	var err error
	s.base, err = s.workload(q.Draft)
	return s, err
}

// workload is a draft as a workload, which probes run even if it is not modelled.
func (s *search) workload(d workload.Draft) (*workload.Workload, error) {
	if s.Probe != nil {
		return d.Runnable()
	}
	return d.WorkloadWithin(s.Work)
}

// candidate is a set of rows that may fit.
type candidate struct {
	rows   []Row
	keys   int // that the rows set
	cost   Cost
	trains Trains // "" if either
}

// kinds are the sets of rows by the kind of training they make of it.
func (s *search) kinds() [][]candidate {
	kinds := make([][]candidate, 3)
	for _, c := range s.candidates() {
		switch c.cost {
		case OtherUpdates:
			kinds[1] = append(kinds[1], c)
		case PartOfModel:
			kinds[2] = append(kinds[2], c)
		default:
			kinds[0] = append(kinds[0], c)
		}
	}
	return kinds
}

// candidates are all combinations of what the question leaves open, the smallest first.
func (s *search) candidates() []candidate {
	var asIs candidate
	if s.base.Adapter != nil {
		asIs.trains = Adapters
	}
	out := []candidate{asIs}
	for _, axis := range Open(s.Given, s.Full) {
		for _, before := range slices.Clone(out) {
			for _, r := range axis {
				if c, ok := before.with(r); ok && r.Applies(s.base, s.Card) {
					out = append(out, c)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return a.keys - b.keys })
	return out
}

// with adds a row, unless what it trains contradicts the others.
func (c candidate) with(r Row) (candidate, bool) {
	if r.Trains != "" && c.trains != "" && r.Trains != c.trains {
		return c, false
	}
	return candidate{append(slices.Clone(c.rows), r), c.keys + r.Keys(), max(c.cost, r.Cost), cmp.Or(c.trains, r.Trains)}, true
}

// maxKeys is how many keys a set of any kind can change, the split of the batch among
// the changes.
func (s *search) maxKeys(kinds [][]candidate) (most int) {
	if s.Most > 0 {
		return s.Most
	}
	for _, kind := range kinds {
		if len(kind) > 0 {
			most = max(most, kind[len(kind)-1].keys+1)
		}
	}
	return most
}

// leastOf finds the sets of one kind that change n keys, and reports whether one of
// them leaves the margin.
func (s *search) leastOf(candidates []candidate, n int) (found bool, err error) {
	for _, c := range candidates {
		var set *Set
		switch c.keys {
		case n:
			set, err = s.whole(c)
		case n - 1:
			set, err = s.split(c)
		}
		if err != nil {
			return false, err
		}
		if set != nil && !s.contains(set) {
			s.Sets = append(s.Sets, *set)
			found = found || set.Verdict == predict.Fits
		}
	}
	return found, nil
}

// contains reports whether some of a set's changes do as well without the others.
func (s *search) contains(set *Set) bool {
	return slices.ContainsFunc(s.Sets, func(found Set) bool {
		return rank(found.Verdict) <= rank(set.Verdict) && len(found.Changes) < len(set.Changes) && !slices.ContainsFunc(found.Changes, func(c Change) bool {
			return !slices.ContainsFunc(set.Changes, c.like)
		})
	})
}

// like reports whether two changes are the same, or both split the batch.
func (c Change) like(other Change) bool {
	return c.Label == other.Label || c.Splits() && other.Splits()
}

// whole tries the batch as it is.
func (s *search) whole(c candidate) (*Set, error) {
	return s.try(attempt{c, s.base.Batch, int64(s.base.Accumulate)})
}

// split tries smaller batches, as many of which are accumulated as make the same
// update, and returns the largest that leaves the margin, or else the largest that fits.
func (s *search) split(c candidate) (best *Set, err error) {
	if s.base.Phase != workload.Train {
		return nil, nil //nolint:nilnil // there are no updates
	}
	if s.Probe != nil {
		return s.probeSplits(c)
	}
	for _, a := range slices.Backward(s.splits(c)) {
		set, err := s.try(a)
		if err != nil {
			return nil, err
		}
		if set != nil && set.Verdict == predict.Fits {
			return set, nil
		}
		if best == nil {
			best = set
		}
	}
	return best, nil
}

// splits are a candidate with each smaller batch, the smallest first.
func (s *search) splits(c candidate) (out []attempt) {
	update := s.base.Batch * int64(s.base.Accumulate)
	for _, batch := range Batches(update) {
		if batch < s.base.Batch && update/batch <= workload.MaxAccumulate {
			out = append(out, attempt{c, batch, update / batch})
		}
	}
	return out
}

// try simulates an attempt, unless its outline says that it does not fit; nil if it
// does not.
func (s *search) try(a attempt) (*Set, error) {
	if s.Probe != nil {
		return s.probe(a)
	}
	needs, err := s.needs(a)
	if err != nil {
		return nil, s.Work.Err() // the changes do not go together
	}
	if s.least == 0 || needs < s.least {
		s.nearest, s.least = a, needs
	}
	if needs > s.Limit {
		return nil, nil //nolint:nilnil // it does not fit, and nothing is wrong
	}
	set, err := s.simulate(a)
	if err != nil {
		return nil, s.Work.Err()
	}
	if set.Verdict == predict.DoesNotFit {
		return nil, nil //nolint:nilnil // it does not fit, and nothing is wrong
	}
	return set, nil
}

// needs is what a set needs at least, by its outline. What has samples of different
// lengths takes at least what a batch of the longest takes.
func (s *search) needs(a attempt) (bytesize.Bytes, error) {
	d := s.draft(s.figures(), attempt{a.candidate, 1, 1})
	delete(d, "expandable_segments") // an outline has no allocator
	key, err := json.Marshal(d)
	if err != nil {
		return 0, fmt.Errorf("write a workload: %w", err)
	}
	o, known := s.outlines[string(key)]
	if !known {
		if w, err := d.WorkloadWithin(s.Work); err == nil {
			w.Lengths = nil
			o, _ = predict.NewOutline(w, s.Card, s.Work)
		}
		s.outlines[string(key)] = o
	}
	if o == nil {
		return 0, fmt.Errorf("%s is not predicted", key)
	}
	return o.NeedsWith(a.batch, a.passes), nil
}

// findNearest simulates what needs the least by its outline.
func (s *search) findNearest() (err error) {
	if s.least == 0 {
		return nil // nothing can be changed
	}
	s.Nearest, err = s.simulate(s.nearest)
	return err
}
