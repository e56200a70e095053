package predict

import (
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// Footprints are what one workload takes of any card. Its steps are run once for
// cards that they do the same on, and played once for those that are asked for the
// same memory.
type Footprints struct {
	w       *workload.Workload
	outline *Outline
	homes   Homes // of parameters that ranks share, nil if they are not known
	effort  *effort.Effort
	runs    []*runOnCards
}

// runOnCards is a process on cards that decide nothing differently in it.
type runOnCards struct {
	ways   []*Process   // one, or two where a race may end in two ways (Late)
	prints []*Footprint // by what the cards decide of sizes
}

// Footprint is what a workload takes of a card as if there were no limit. It
// answers for most limits whether it fits without another run, so that one
// serves all cards that differ in their memory alone.
type Footprint struct {
	Allocated bytesize.Bytes // at the peak
	Reserved  bytesize.Bytes // at the most
	Timing    Timing
	ways      []*Simulation
	sizes     [][]int64 // of scratch memory, in each way
}

// Footprints are those of the workload that was outlined, with another batch or
// number of passes, within an effort. Homes are those of its parameters, nil if they
// are not known.
func (o *Outline) Footprints(w *workload.Workload, homes Homes, e *effort.Effort) *Footprints {
	return &Footprints{w: w, outline: o, homes: homes, effort: e}
}

// On returns what three steps take of a card.
func (f *Footprints) On(card *gpu.Card) (print *Footprint, err error) {
	defer recovered(f.w, &err)
	run, sizes, err := f.run(deviceOf(card))
	if err != nil {
		return nil, err
	}
	for _, p := range run.prints {
		if slices.EqualFunc(p.sizes, sizes, slices.Equal) {
			return p, nil
		}
	}
	print = &Footprint{Timing: run.ways[0].Timing(), sizes: sizes}
	for i, p := range run.ways {
		print.ways = append(print.ways, &Simulation{Process: p, Card: card, runner: NewRunner(f.w, card).Within(f.effort)})
		course, err := print.play(i, noLimit)
		if err != nil {
			return nil, err
		}
		print.Allocated = max(print.Allocated, bytesize.Bytes(course.PeakAllocated))
		print.Reserved = max(print.Reserved, mostReserved(course))
	}
	run.prints = append(run.prints, print)
	return print, nil
}

// run returns processes that do what they would on a card, and the sizes that the
// card decides.
func (f *Footprints) run(d torch.Device) (*runOnCards, [][]int64, error) {
	for _, r := range f.runs {
		if sizes, ok := r.sizesOn(d); ok {
			return r, sizes, nil
		}
	}
	r := &runOnCards{}
	for _, late := range []bool{false, true} {
		if late && !races(f.w) {
			break
		}
		p := &Process{w: f.w, homes: f.homes, late: late, manyCards: true, expected: f.expected()}
		if _, err := p.run(d, stepsFor(f.w), f.effort); err != nil {
			return nil, nil, err
		}
		r.ways = append(r.ways, p)
	}
	f.runs = append(f.runs, r)
	sizes, _ := r.sizesOn(d)
	return r, sizes, nil
}

// sizesOn are the sizes that a card decides. It reports false for a card on which the
// processes may do something else.
func (r *runOnCards) sizesOn(d torch.Device) (sizes [][]int64, ok bool) {
	for _, p := range r.ways {
		of, ok := p.t.SizesOn(d)
		if !ok {
			return nil, false
		}
		sizes = append(sizes, of)
	}
	return sizes, true
}

// expected is about how many events a process has: of the passes of a step, the second
// stands for the rest.
func (f *Footprints) expected() int {
	return f.outline.events[0] + stepsFor(f.w)*min(f.w.Accumulate, 2)*f.outline.events[1]
}

// Played is how many footprints there are.
func (f *Footprints) Played() int {
	n := 0
	for _, r := range f.runs {
		n += len(r.prints)
	}
	return n
}

// Events are how many events are held.
func (f *Footprints) Events() int {
	n := 0
	for _, r := range f.runs {
		for _, p := range r.ways {
			n += p.events()
		}
	}
	return n
}

// Forget gives up the steps: only the figures may be looked at afterwards.
func (f *Footprints) Forget() {
	for _, r := range f.runs {
		for _, p := range r.ways {
			p.t.Forget()
		}
	}
}

// play plays the steps of a way with the sizes of the card.
func (f *Footprint) play(way int, limit bytesize.Bytes) (*allocator.Course, error) {
	s := f.ways[way]
	s.Process.t.SetSizes(f.sizes[way])
	return s.play(limit)
}

// Within is what the steps reserve under a limit, and whether they fit it. An allocator
// that never needs more than the limit does not notice it; one that needs less than is
// reserved may let go of cached memory in time.
func (f *Footprint) Within(limit bytesize.Bytes) (reserved bytesize.Bytes, fits bool, err error) {
	switch {
	case f.Reserved <= limit:
		return f.Reserved, true, nil
	case f.Allocated > limit:
		return 0, false, nil
	}
	for way := range f.ways {
		course, err := f.play(way, limit)
		if err != nil || !course.Fits() {
			return 0, false, err
		}
		reserved = max(reserved, mostReserved(course))
	}
	return reserved, true, nil
}

// mostReserved is the most that is reserved in any stage.
func mostReserved(course *allocator.Course) (most bytesize.Bytes) {
	for _, s := range course.Stages {
		most = max(most, bytesize.Bytes(s.PeakReserved))
	}
	return most
}

// Device is what a process asks of a card: two cards with the same ask for the
// same memory.
func Device(card *gpu.Card) any { return deviceOf(card) }
