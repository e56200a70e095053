package change

import (
	"bytes"
	"encoding/json"
	"maps"

	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// Form is a draft as a program, such as one that loads its model on the host.
type Form func(workload.Draft) workload.Draft

// AsAsked is the draft as it is.
func AsAsked(d workload.Draft) workload.Draft { return d }

// attempt is a candidate with a batch.
type attempt struct {
	candidate
	batch, passes int64
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

// simulate runs an attempt in all forms: its verdict is the worst of them. Where it does
// not fit as one of them, the figures say so.
func (s *search) simulate(a attempt) (*Set, error) {
	set, err := s.simulateAs(s.figures(), a)
	for i := 1; i < len(s.Forms) && err == nil && set.Verdict != predict.DoesNotFit; i++ {
		if sameDrafts(s.draft(s.Forms[i], a), s.draft(s.figures(), a)) {
			continue
		}
		other, err := s.simulateAs(s.Forms[i], a)
		switch {
		case err != nil:
			return nil, err
		case other.Verdict == predict.DoesNotFit:
			return other, nil
		case other.Verdict == predict.Tight:
			set.Verdict = predict.Tight
		}
	}
	return set, err
}

func sameDrafts(a, b workload.Draft) bool {
	return maps.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

// figures is the form that figures are of.
func (s *search) figures() Form {
	if len(s.Forms) == 0 {
		return AsAsked
	}
	return s.Forms[0]
}

// simulateAs runs the steps of an attempt in one form.
func (s *search) simulateAs(f Form, a attempt) (*Set, error) {
	w, err := s.workload(s.draft(f, a))
	if err != nil {
		return nil, err
	}
	made := s.made(a)
	steps, err := s.run(Trial{Workload: w.WithLimit(s.Limit), Margin: s.Margin, Changes: made})
	if err != nil {
		return nil, err
	}
	w.GPU = s.Card.ID
	set := &Set{Steps: *steps, Workload: w, Trains: AllWeights, Changes: made, cost: a.cost}
	if w.Adapter != nil {
		set.Trains = Adapters
	}
	return set, nil
}

// made are the changes of an attempt.
func (s *search) made(a attempt) []Change {
	out := []Change{}
	for _, r := range a.rows {
		out = append(out, r.Change)
	}
	if a.batch != s.base.Batch {
		out = append(out, Split(a.batch, a.passes))
	}
	return out
}
