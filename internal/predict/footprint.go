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
	Allocated  bytesize.Bytes // at the peak
	Reserved   bytesize.Bytes // at the most
	Timing     Timing
	simulation Simulation
}

// Footprint runs three steps of the workload that was outlined, with another batch or
// number of passes, within an effort.
func (o *Outline) Footprint(w *workload.Workload, card *gpu.Card, e *effort.Effort) (f *Footprint, err error) {
	defer recovered(w, &err)
	p, err := (&Process{w: w, homes: o.homes}).run(deviceOf(card), stepsFor(w), e)
	if err != nil {
		return nil, err
	}
	f = &Footprint{Timing: p.Timing(), simulation: Simulation{Process: p, Card: card, runner: NewRunner(w, card).Within(e)}}
	course, err := f.simulation.play(noLimit)
	if err != nil {
		return nil, err
	}
	f.Allocated = bytesize.Bytes(course.PeakAllocated)
	for _, s := range course.Stages {
		f.Reserved = max(f.Reserved, bytesize.Bytes(s.PeakReserved))
	}
	return f, nil
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
	course, err := f.simulation.play(limit)
	return err == nil && course.Fits(), err
}

// Forget gives up the steps: only the figures may be looked at afterwards.
func (f *Footprint) Forget() { f.simulation.Process.t.Forget() }

// Device is what a process asks of a card: two cards with the same ask for the
// same memory.
func Device(card *gpu.Card) any { return deviceOf(card) }
