package predict

import (
	"memorymark/internal/bytesize"
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Footprint is what a workload takes of a card as if there were no limit. It
// answers for most limits whether it fits without another run, so that one
// serves all cards that differ in their memory alone.
type Footprint struct {
	Allocated bytesize.Bytes // at the peak
	Reserved  bytesize.Bytes // at the most
	Timing    Timing
	ways      []*Simulation // one, or two where a race may end in two ways (Late)
}

// Footprint runs three steps of the workload that was outlined, with another batch or
// number of passes, within an effort.
func (o *Outline) Footprint(w *workload.Workload, card *gpu.Card, e *effort.Effort) (f *Footprint, err error) {
	defer recovered(w, &err)
	f = &Footprint{}
	if err := f.add(&Process{w: w, homes: o.homes}, card, e); err != nil {
		return nil, err
	}
	f.Timing = f.ways[0].Process.Timing()
	if races(w) {
		err = f.add(&Process{w: w, homes: o.homes, late: true}, card, e)
	}
	return f, err
}

// add runs a process.
func (f *Footprint) add(p *Process, card *gpu.Card, e *effort.Effort) error {
	p, err := p.run(deviceOf(card), stepsFor(p.w), e)
	if err != nil {
		return err
	}
	s := &Simulation{Process: p, Card: card, runner: NewRunner(p.w, card).Within(e)}
	course, err := s.play(noLimit)
	if err != nil {
		return err
	}
	f.ways = append(f.ways, s)
	f.Allocated = max(f.Allocated, bytesize.Bytes(course.PeakAllocated))
	for _, stage := range course.Stages {
		f.Reserved = max(f.Reserved, bytesize.Bytes(stage.PeakReserved))
	}
	return nil
}

// FitsWithin reports whether the steps fit a limit. An allocator that never
// needs more than the limit does not notice it; one that needs less than is
// reserved may let go of cached memory in time.
func (f *Footprint) FitsWithin(limit bytesize.Bytes) (bool, error) {
	switch {
	case f.Reserved <= limit:
		return true, nil
	case f.Allocated > limit:
		return false, nil
	}
	for _, s := range f.ways {
		if course, err := s.play(limit); err != nil || !course.Fits() {
			return false, err
		}
	}
	return true, nil
}

// Forget gives up the steps: only the figures may be looked at afterwards.
func (f *Footprint) Forget() {
	for _, s := range f.ways {
		s.Process.t.Forget()
	}
}

// Device is what a process asks of a card: two cards with the same ask for the
// same memory.
func Device(card *gpu.Card) any { return deviceOf(card) }
