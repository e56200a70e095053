package predict

import (
	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
)

// Line is the peak of allocated memory against the batch: fixed + per sample ×
// batch. It holds from a batch on; smaller ones peak in the optimizer's step or
// in the gradients of parameters, which know no batch.
type Line struct {
	Fixed     bytesize.Bytes `json:"fixed"`
	PerSample bytesize.Bytes `json:"per_sample"`
	From      int64          `json:"from_batch"`
}

// At is the peak at a batch, as the line has it.
func (l *Line) At(batch int64) bytesize.Bytes { return l.Fixed + bytesize.Bytes(batch)*l.PerSample }

// onLine is how far from the line a peak may be that it holds for, as a share.
const onLine = 0.02

// Holds reports whether a batch's peak is on the line.
func (l *Line) Holds(batch int64, peak bytesize.Bytes) bool {
	off := float64(l.At(batch)-peak) / float64(peak)
	return off > -onLine && off < onLine
}

// bend is how much the slope may change, as a share of it, that a line remains
// one.
const bend = 0.25

// MemoryLine returns how the peak grows with the batch from the given one on,
// once the process has settled; nil if no memory would be enough, and where it
// is not a line: while the optimizer's step or the gradients of parameters
// take the most, the batch hardly matters.
func (r *Runner) MemoryLine(batch int64) (*Line, error) {
	var peaks [3]bytesize.Bytes
	for i := range peaks {
		var err error
		if peaks[i], err = r.settledPeak(batch * int64(i+1)); err != nil || peaks[i] == 0 {
			return nil, err
		}
	}
	slope, next := peaks[1]-peaks[0], peaks[2]-peaks[1]
	if slope <= 0 || float64(max(next-slope, slope-next)) > bend*float64(slope) {
		return nil, nil //nolint:nilnil // no line, and nothing wrong
	}
	return &Line{Fixed: peaks[0] - slope, PerSample: slope / bytesize.Bytes(batch), From: batch}, nil
}

// settledPeak is the peak of allocated memory in the last step without a
// limit, 0 if no memory would be enough.
func (r *Runner) settledPeak(batch int64) (bytesize.Bytes, error) {
	p, err := r.process(batch)
	if err != nil {
		return 0, err
	}
	s := Simulation{Process: p, Card: r.card}
	c := allocator.Play(p.Trace(), s.options(noLimit), p.Steps[steps-2:])
	if len(c.Stages) < 2 || !c.Fits() {
		return 0, nil
	}
	return bytesize.Bytes(c.Stages[1].PeakAllocated), nil
}
