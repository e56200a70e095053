package change

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
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
	Effort *effort.Effort
	// Forms are the programs that a set of changes must fit as; none for the draft as
	// it is. The figures are those of the first.
	Forms []Form
}

// Form is a draft as a program, such as one that loads its model on the host.
type Form func(workload.Draft) workload.Draft

// AsAsked is the draft as it is.
func AsAsked(d workload.Draft) workload.Draft { return d }

// Set is a set of changes with which a workload trains.
type Set struct {
	Changes     []Change
	Trains      Trains
	Verdict     predict.Verdict // Fits or Tight
	Workload    *workload.Workload
	Peak        predict.Step // of each kind the most over all steps
	StepSeconds float64      // of an update
	cost        Cost
}

// Answer is what a search found.
type Answer struct {
	// Sets are the smallest with which the workload trains, by what they train:
	// nothing but memory and time changes, or the optimizer does, or adapters are
	// trained. The preferred comes first.
	Sets []Set
	// Nearest needs the least, where there is no set that fits.
	Nearest *Set
}

// Least finds the smallest sets of changes with which a workload trains: every
// single change that is enough, else every pair, and so on. It does so for each kind
// of training apart, so that another kind with fewer changes hides none. A set that
// leaves less than the margin does not end the search.
func Least(q Question) (*Answer, error) {
	base, err := q.Draft.Workload()
	if err != nil {
		return nil, err
	}
	s := &search{Question: q, base: base, outlines: make(map[string]*predict.Outline)}
	most := q.Most
	for i, kind := range s.kinds() {
		keys, err := s.leastOf(kind, most)
		if err != nil {
			return nil, err
		}
		if i == 0 && keys > 0 {
			most = keys // another training with more changes is of no use
		}
	}
	slices.SortStableFunc(s.Sets, prefer)
	if len(s.Sets) == 0 && q.Most == 0 {
		if err := s.findNearest(); err != nil {
			return nil, err
		}
	}
	return &s.Answer, nil
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
	Answer
	base     *workload.Workload
	outlines map[string]*predict.Outline // by draft without its batch; nil for those that cannot be predicted

	nearest attempt
	least   bytesize.Bytes // that nearest needs, 0 before there is one
}

// candidate is a set of rows that may fit.
type candidate struct {
	rows   []Row
	keys   int // that the rows set
	cost   Cost
	trains Trains // "" if either
}

// attempt is a candidate with a batch.
type attempt struct {
	candidate
	batch, passes int64
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

// leastOf finds the smallest sets of one kind, the split of the batch among the
// changes, and returns how many keys those set that leave the margin; 0 if none does.
func (s *search) leastOf(candidates []candidate, most int) (keys int, err error) {
	if most == 0 && len(candidates) > 0 {
		most = candidates[len(candidates)-1].keys + 1
	}
	for n := 1; n <= most && keys == 0; n++ {
		for _, c := range candidates {
			var set *Set
			switch c.keys {
			case n:
				set, err = s.whole(c)
			case n - 1:
				set, err = s.split(c)
			}
			if err != nil {
				return 0, err
			}
			if set != nil && !s.contains(set) {
				s.Sets = append(s.Sets, *set)
				if set.Verdict == predict.Fits {
					keys = n
				}
			}
		}
	}
	return keys, nil
}

// contains reports whether some of a set's changes are enough without the others.
func (s *search) contains(set *Set) bool {
	return slices.ContainsFunc(s.Sets, func(found Set) bool {
		return found.Verdict == predict.Fits && len(found.Changes) < len(set.Changes) && !slices.ContainsFunc(found.Changes, func(c Change) bool {
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
// update: the largest that leaves the margin, or else the largest that fits.
func (s *search) split(c candidate) (tight *Set, err error) {
	if s.base.Phase != workload.Train {
		return nil, nil //nolint:nilnil // there are no updates
	}
	update := s.base.Batch * int64(s.base.Accumulate)
	for _, batch := range slices.Backward(Batches(update)) {
		if batch >= s.base.Batch || update/batch > workload.MaxAccumulate {
			continue
		}
		set, err := s.try(attempt{c, batch, update / batch})
		if err != nil {
			return nil, err
		}
		if set != nil && set.Verdict == predict.Fits {
			return set, nil
		}
		if tight == nil {
			tight = set
		}
	}
	return tight, nil
}

// try simulates an attempt, unless its outline says that it does not fit; nil if it
// does not.
func (s *search) try(a attempt) (*Set, error) {
	needs, err := s.needs(a)
	if err != nil {
		return nil, s.Effort.Err() // the changes do not go together
	}
	if s.least == 0 || needs < s.least {
		s.nearest, s.least = a, needs
	}
	if needs > s.Limit {
		return nil, nil //nolint:nilnil // it does not fit, and nothing is wrong
	}
	set, err := s.simulate(a)
	if err != nil {
		return nil, s.Effort.Err()
	}
	if set.Verdict == predict.DoesNotFit {
		return nil, nil //nolint:nilnil // it does not fit, and nothing is wrong
	}
	return set, nil
}

// simulate runs an attempt in all forms: its verdict is the worst of them.
func (s *search) simulate(a attempt) (*Set, error) {
	set, err := s.simulateAs(s.form(0), a)
	for i := 1; i < len(s.Forms) && err == nil && set.Verdict != predict.DoesNotFit; i++ {
		if sameDrafts(s.draft(s.Forms[i], a), s.draft(s.form(0), a)) {
			continue
		}
		var other *Set
		if other, err = s.simulateAs(s.Forms[i], a); err == nil && other.Verdict != predict.Fits {
			set.Verdict = other.Verdict
		}
	}
	return set, err
}

func sameDrafts(a, b workload.Draft) bool {
	return maps.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

// form is one of the forms that a set must fit as.
func (s *search) form(i int) Form {
	if len(s.Forms) == 0 {
		return AsAsked
	}
	return s.Forms[i]
}

func (s *search) simulateAs(f Form, a attempt) (*Set, error) {
	w, err := s.draft(f, a).WorkloadWithin(s.Effort)
	if err != nil {
		return nil, err
	}
	sim, err := predict.NewRunner(w.WithLimit(s.Limit), s.Card).Within(s.Effort).Simulate(a.batch)
	if err != nil {
		return nil, err
	}
	w.GPU = s.Card.ID
	set := &Set{
		Verdict: sim.Verdict(s.Margin), Workload: w, Peak: sim.Peak(), StepSeconds: sim.StepSeconds(),
		Trains: AllWeights, Changes: []Change{}, cost: a.cost,
	}
	if w.Adapter != nil {
		set.Trains = Adapters
	}
	for _, r := range a.rows {
		set.Changes = append(set.Changes, r.Change)
	}
	if a.batch != s.base.Batch {
		set.Changes = append(set.Changes, Split(a.batch, a.passes))
	}
	return set, nil
}

// needs is what a set needs at least, by its outline. What has samples of different
// lengths takes at least what a batch of the longest takes.
func (s *search) needs(a attempt) (bytesize.Bytes, error) {
	d := s.draft(s.form(0), attempt{a.candidate, 1, 1})
	delete(d, "expandable_segments") // an outline has no allocator
	key, err := json.Marshal(d)
	if err != nil {
		return 0, fmt.Errorf("write a workload: %w", err)
	}
	o, known := s.outlines[string(key)]
	if !known {
		if w, err := d.WorkloadWithin(s.Effort); err == nil {
			w.Lengths = nil
			o, _ = predict.NewOutline(w, s.Card, s.Effort)
		}
		s.outlines[string(key)] = o
	}
	if o == nil {
		return 0, fmt.Errorf("%s is not predicted", key)
	}
	return o.NeedsWith(a.batch, a.passes), nil
}

// draft is the question with changes, as a program.
func (s *search) draft(f Form, a attempt) workload.Draft {
	d := maps.Clone(s.Draft)
	for _, r := range a.rows {
		maps.Copy(d, r.Patch)
	}
	d["batch"], d["accumulate"] = number(a.batch), number(a.passes)
	return f(d)
}

// findNearest simulates what needs the least by its outline.
func (s *search) findNearest() (err error) {
	if s.least == 0 {
		return nil // nothing can be changed
	}
	s.Nearest, err = s.simulate(s.nearest)
	return err
}
