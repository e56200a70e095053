package predict

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/workload"
)

// batchShape is what differs between batches of samples of different lengths.
type batchShape struct {
	length int64 // of the longest sample
	tokens int64 // of all samples, before they are padded to it
	padded bool  // some are shorter
}

const (
	// drawnSteps is how many steps of drawn batches run before the longest one, fewer
	// where those would have more than drawnEvents.
	drawnSteps  = 30
	drawnEvents = 1 << 20
	// drawnBy is the seed of the drawing.
	drawnBy = 1
	// drawnAtATime is how many samples are drawn before the work is asked.
	drawnAtATime = 1 << 16
)

// shapesOf draws the batches of a process, each sample from all of the
// dataset's. The last step is of the longest sample with shorter ones: it
// takes the most, and finds what all others have left in the allocator.
func shapesOf(w *workload.Workload, steps int, spend func(samples int)) []batchShape {
	source := rand.New(rand.NewPCG(drawnBy, 0)) //nolint:gosec // the same process each time
	out := make([]batchShape, 0, steps*w.Accumulate)
	for range (steps - 1) * w.Accumulate {
		out = append(out, drawShape(w, source, spend))
	}
	for range w.Accumulate {
		out = append(out, batchShape{length: w.Sequence, padded: w.Batch > 1 && w.AttentionMask == workload.Padded})
	}
	return out
}

func drawShape(w *workload.Workload, source *rand.Rand, spend func(samples int)) batchShape {
	var s batchShape
	shortest := w.Sequence
	for i := range w.Batch {
		if i%drawnAtATime == 0 {
			spend(int(min(w.Batch-i, drawnAtATime)))
		}
		n := w.Lengths.At(source.Int64N(w.Lengths.Samples()))
		s.length, shortest = max(s.length, n), min(shortest, n)
		s.tokens += n
	}
	s.padded = shortest < s.length && w.AttentionMask == workload.Padded
	return s
}

// drewEnough reports whether another drawn step, and the longest one, would make the
// process too long: a deep model has many events in a step, and so has one of many passes.
func (p *program) drewEnough() bool {
	perStep := (p.events() - p.inputEvents) / len(p.drawn)
	return p.events()+2*perStep > drawnEvents
}

// nextShape is the shape of the next batch.
func (p *program) nextShape() batchShape {
	if p.fed == len(p.shapes) {
		return batchShape{length: p.w.Sequence, padded: p.w.AttentionMask == workload.Padded}
	}
	p.fed++
	return p.shapes[p.fed-1]
}

// Range is what steps take whose batches differ in length. Steps are drawn with
// a seed, so that the same question has the same answer; then comes the longest
// batch that there can be.
type Range struct {
	Samples  int64   `json:"samples"`
	Shortest int64   `json:"shortest"` // tokens of the shortest sample
	Mean     float64 `json:"mean"`
	Longest  int64   `json:"longest" doc:"tokens of the longest sample, once it is cut to sequence"`
	Padding  float64 `json:"padding" doc:"the share of tokens that is padding, in the batches that were drawn"`
	Drawn    int     `json:"drawn_steps" doc:"steps whose batches were drawn; the longest one follows them"`
	Seed     uint64  `json:"seed" doc:"of the drawing"`

	Least   RangeStep `json:"least"`
	Typical RangeStep `json:"typical" doc:"the median of the drawn steps"`
	Most    RangeStep `json:"most" doc:"the longest batch, after all others"`
	// Decides is the step that makes the allocator reserve what it has at the end.
	Decides RangeStep `json:"decides" doc:"the step after which the allocator reserves no more"`
	// Fixed is what is reserved if every batch is padded to the longest sample.
	Fixed bytesize.Bytes `json:"fixed_reserved" doc:"what is reserved if every batch is as long as the longest sample"`
	// Expandable is what is reserved with expandable segments.
	Expandable bytesize.Bytes `json:"expandable_reserved" doc:"what is reserved with expandable_segments"`
}

// RangeStep is a step and its longest sample.
type RangeStep struct {
	Step          int            `json:"step"` // 1 is the first
	Sequence      int64          `json:"sequence"`
	PeakAllocated bytesize.Bytes `json:"peak_allocated"`
	PeakReserved  bytesize.Bytes `json:"peak_reserved"`
}

// stepsFor is how many steps a prediction runs.
func stepsFor(w *workload.Workload) int {
	if w.Varied() {
		return drawnSteps + 1
	}
	return steps
}

// lengthRange says what samples of different lengths come to, nil where all
// batches are alike.
func (s *Process) lengthRange(all []allocator.Usage) (*Range, error) {
	w := s.program.w
	if !w.Varied() || len(all) < 2 {
		return nil, nil //nolint:nilnil // no range, and nothing wrong
	}
	ranged := s.program.rangeSteps(all)
	drawn := slices.Clone(ranged[:len(ranged)-1])
	if len(drawn) > 1 {
		drawn = drawn[1:] // the first one makes the optimizer's state
	}
	slices.SortStableFunc(drawn, func(a, b RangeStep) int { return cmp.Compare(a.PeakAllocated, b.PeakAllocated) })
	fixed, err := s.ofLongest()
	if err != nil {
		return nil, err
	}
	expandable, err := s.expandable()
	if err != nil {
		return nil, err
	}
	return &Range{
		Samples: w.Lengths.Samples(), Shortest: w.Lengths.Shortest(), Mean: w.Lengths.Mean(), Longest: w.Lengths.Longest(),
		Padding: s.program.paddingShare(), Drawn: len(all) - 1, Seed: drawnBy,
		Least: drawn[0], Typical: drawn[len(drawn)/2], Most: ranged[len(ranged)-1],
		Decides: slices.MaxFunc(ranged, func(a, b RangeStep) int { return cmp.Compare(a.PeakReserved, b.PeakReserved) }),
		Fixed:   fixed.Peak().PeakReserved, Expandable: expandable,
	}, nil
}

// ofLongest is the prediction if every batch is as long as the longest sample.
func (s *Process) ofLongest() (*Process, error) {
	w := *s.program.w
	w.Lengths = nil
	return Run(&w, s.card, Options{Budget: s.batches.options.Budget})
}

// expandable is what the process reserves with expandable segments.
func (s *Process) expandable() (bytesize.Bytes, error) {
	o := s.options(noLimit)
	o.Settings.ExpandableSegments = true
	out, err := allocator.Play(s.program.requests(), o, s.program.partEnds())
	if err != nil {
		return 0, err
	}
	return PeakOf(out.Parts[stepPart:]).PeakReserved, nil
}

// rangeSteps are the steps with the longest sample of each.
func (p *program) rangeSteps(all []allocator.Usage) []RangeStep {
	passes := p.w.Accumulate
	out := make([]RangeStep, len(all))
	for i, s := range all {
		out[i] = RangeStep{Step: i + 1, PeakAllocated: s.PeakAllocated, PeakReserved: s.PeakReserved}
		for _, shape := range p.shapes[i*passes : (i+1)*passes] {
			out[i].Sequence = max(out[i].Sequence, shape.length)
		}
	}
	return out
}

// paddingShare is how much of the drawn batches is padding.
func (p *program) paddingShare() float64 {
	tokens, places := int64(0), int64(0)
	for _, s := range p.shapes[:len(p.shapes)-p.w.Accumulate] {
		tokens += s.tokens
		places += p.w.Batch * s.length
	}
	return 1 - float64(tokens)/float64(places)
}
