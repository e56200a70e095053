package study

import (
	"math"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/predict"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// Result is what the profile of a cell comes to: everything that tables and
// pages say of it, without the trace.
type Result struct {
	Workload *workload.Workload `json:"workload,omitempty"` // nil if there is no such workload, which Error says
	Engine   evidence.Engine    `json:"engine,omitempty"`
	// Peak is the most over all phases; nil if the cell could not be profiled,
	// or ran out of memory where it is not known what it would have taken.
	Peak   *Peak        `json:"peak,omitempty"`
	Phases []PhaseUsage `json:"phases,omitempty"` // in the order of a step
	// After is what is live when the recorded steps are over, in requested
	// bytes; absent without a trace.
	After       bytesize.Bytes `json:"after,omitempty"`
	StepSeconds *float64       `json:"step_seconds,omitempty"`
	Largest     []Allocation   `json:"largest_allocations,omitempty"`
	OutOfMemory *OutOfMemory   `json:"out_of_memory,omitempty"`
	Error       string         `json:"error,omitempty"` // why the cell could not be profiled
	Provenance  *Provenance    `json:"provenance,omitempty"`
}

// Peak is a peak as the allocator's statistics tell it.
type Peak struct {
	Phase     string         `json:"phase,omitempty"` // with the most allocated, of the peak of a step
	Requested bytesize.Bytes `json:"requested"`       // what tensors asked for
	Allocated bytesize.Bytes `json:"allocated"`       // whole blocks
	Reserved  bytesize.Bytes `json:"reserved"`        // held from the driver
}

// PhaseUsage is a part of a step: its peak, and what that is made of.
type PhaseUsage struct {
	Name string `json:"name"`
	Peak
	// The rest is of requested bytes, and absent without a trace. Begin and End
	// are what is live when the part begins and ends for the first time.
	Made  []CategoryBytes `json:"made_of,omitempty"` // the peak
	Begin bytesize.Bytes  `json:"begin,omitempty"`
	End   bytesize.Bytes  `json:"end,omitempty"`
	// WeightCopies are, of the activations at the peak, the weights that
	// autocast has cast and keeps.
	WeightCopies bytesize.Bytes `json:"weight_copies,omitempty"`
}

// CategoryBytes is what is live for one purpose.
type CategoryBytes struct {
	Category string         `json:"category"`
	Bytes    bytesize.Bytes `json:"bytes"`
	Count    int            `json:"count"`
}

// Of is how much of a phase's peak is of a category.
func (p *PhaseUsage) Of(c trace.Category) bytesize.Bytes {
	for _, m := range p.Made {
		if m.Category == c.String() {
			return m.Bytes
		}
	}
	return 0
}

// Phase returns the usage of a part of the step, nil if it did not run.
func (r *Result) Phase(name string) *PhaseUsage {
	for i := range r.Phases {
		if r.Phases[i].Name == name {
			return &r.Phases[i]
		}
	}
	return nil
}

// Fits reports whether the cell ran.
func (r *Result) Fits() bool { return r.OutOfMemory == nil && r.Error == "" }

// Recorded reports whether there was a trace.
func (r *Result) Recorded() bool { return len(r.Largest) > 0 }

// Classified returns the allocations of a profile and what they are for. In a
// cell that runs forward only, what autograd holds until the loss is there is
// called activation: that it is then dropped, and not used, does not make it a
// temporary.
func Classified(w *workload.Workload, t *trace.Trace) []trace.Lifetime {
	lifetimes := t.Lifetimes()
	t.Classify(lifetimes)
	if w.Phase != workload.Forward {
		return lifetimes
	}
	for _, s := range spans(t) {
		last := lastAlloc(t, s)
		for i := range lifetimes {
			if l := &lifetimes[i]; l.For == trace.Temporary && l.Alloc >= s.from && l.Alloc < s.to && l.Freed > last {
				l.For = trace.Activation
			}
		}
	}
	return lifetimes
}

func lastAlloc(t *trace.Trace, s span) int {
	for i := s.to - 1; i >= s.from; i-- {
		if t.Events[i].Action == trace.Alloc {
			return i
		}
	}
	return s.from
}

// NewResult works out what a profile says.
func NewResult(c Cell, engine evidence.Engine, p *Profile) *Result {
	provenance := p.Provenance // alone: a pointer into the profile would keep its trace
	r := &Result{Workload: c.Workload, Engine: engine, OutOfMemory: p.OutOfMemory, Provenance: &provenance}
	if seconds, ok := median(p.StepSeconds); ok {
		r.StepSeconds = &seconds
	}
	if p.OutOfMemory == nil || p.OutOfMemory.Needs > 0 { // else these are peaks until it failed
		for _, ph := range p.Phases {
			r.addPhase(ph)
		}
	}
	if p.Trace != nil && len(p.Trace.Events) > 0 {
		lifetimes := Classified(c.Workload, p.Trace)
		if p.OutOfMemory == nil { // else the trace is not of those peaks
			r.addCauses(p.Trace, lifetimes, c.Workload)
		}
		r.Largest = largest(p.Trace, lifetimes)
	}
	return r
}

func (r *Result) addPhase(p predict.Phase) {
	usage := PhaseUsage{Name: p.Name, Peak: Peak{Requested: p.PeakRequested, Allocated: p.PeakAllocated, Reserved: p.PeakReserved}}
	r.Phases = append(r.Phases, usage)
	if r.Peak == nil {
		r.Peak = &Peak{}
	}
	if usage.Allocated > r.Peak.Allocated {
		r.Peak.Phase, r.Peak.Allocated, r.Peak.Requested = p.Name, usage.Allocated, usage.Requested
	}
	r.Peak.Reserved = max(r.Peak.Reserved, usage.Reserved)
}

// addCauses says what each phase's peak is made of.
func (r *Result) addCauses(t *trace.Trace, lifetimes []trace.Lifetime, w *workload.Workload) {
	active := activeAfter(t, lifetimes)
	r.After = bytesize.Bytes(active[len(active)-1])
	all := spans(t)
	for i := range r.Phases {
		p := &r.Phases[i]
		peak := -1
		for _, s := range all {
			if s.name != p.Name || s.from >= s.to {
				continue
			}
			if peak < 0 {
				p.Begin, p.End = liveBefore(t, active, s.from), liveBefore(t, active, s.to)
				peak = s.from
			}
			for e := s.from; e < s.to; e++ {
				if active[e] > active[peak] {
					peak = e
				}
			}
		}
		if peak < 0 {
			continue
		}
		live := trace.Live(lifetimes, peak)
		p.Made = categories(live)
		if w.Precision == workload.AMPBF16 || w.Precision == workload.AMPFP16 {
			p.WeightCopies = weightCopies(live)
		}
	}
}

// weightCopies adds up what has half the size of a parameter, as often as
// there are such parameters: under autocast every weight that was used is kept
// as a copy of two bytes an element, for backward. Stacks do not tell these
// copies from what the same lines compute.
func weightCopies(live []trace.Lifetime) bytesize.Bytes {
	halves := make(map[int64]int)
	for _, l := range live {
		if l.For == trace.Parameter {
			halves[l.Size/2]++
		}
	}
	var sum bytesize.Bytes
	for _, l := range live {
		if l.For == trace.Activation && halves[l.Size] > 0 {
			halves[l.Size]--
			sum += bytesize.Bytes(l.Size)
		}
	}
	return sum
}

// categories adds up allocations by what they are for, what lives longest
// first.
func categories(live []trace.Lifetime) []CategoryBytes {
	var out []CategoryBytes
	for _, g := range trace.GroupBy(live, trace.ByCategory) {
		out = append(out, CategoryBytes{g.Key.String(), bytesize.Bytes(g.Bytes), g.Count})
	}
	place := func(c CategoryBytes) int {
		return slices.IndexFunc(trace.Categories, func(known trace.Category) bool { return known.String() == c.Category })
	}
	slices.SortFunc(out, func(a, b CategoryBytes) int { return place(a) - place(b) })
	return out
}

// activeAfter is how many requested bytes are live after each event.
func activeAfter(t *trace.Trace, lifetimes []trace.Lifetime) []int64 {
	change := make([]int64, len(t.Events)+1)
	for i := range lifetimes {
		l := &lifetimes[i]
		change[max(l.Alloc, 0)] += l.Size
		change[l.Gone] -= l.Size
	}
	for i := 1; i < len(change); i++ {
		change[i] += change[i-1]
	}
	return change[:len(t.Events)]
}

// liveBefore is how many requested bytes are live before an event.
func liveBefore(t *trace.Trace, active []int64, event int) bytesize.Bytes {
	if event > 0 {
		return bytesize.Bytes(active[event-1])
	}
	var sum int64
	for _, b := range t.Initial {
		sum += b.Requested
	}
	return bytesize.Bytes(sum)
}

// span is a part of a step in a trace: events, to excluded.
type span struct {
	name     string
	from, to int
}

// spans returns the parts of the steps of a trace; one that is not ended lasts
// to the end.
func spans(t *trace.Trace) []span {
	var out []span
	for _, m := range t.Marks {
		switch {
		case !isPhase(m.Name):
		case !m.End:
			out = append(out, span{m.Name, m.Event, len(t.Events)})
		case len(out) > 0:
			out[len(out)-1].to = m.Event
		}
	}
	return out
}

// PhaseMarks are the marks of a trace that begin and end parts of steps.
func PhaseMarks(t *trace.Trace) []trace.Mark {
	return slices.DeleteFunc(slices.Clone(t.Marks), func(m trace.Mark) bool { return !isPhase(m.Name) })
}

// median is the middle of some times, rounded to microseconds.
func median(seconds []float64) (float64, bool) {
	if len(seconds) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(seconds))
	middle := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	return math.Round(middle*1e6) / 1e6, true
}
