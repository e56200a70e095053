package predict

import (
	"slices"
	"sync"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// MemoryLine is the peak of allocated memory against the batch: fixed + per sample ×
// batch. It holds from a batch on; smaller ones peak in the optimizer's step or
// in the gradients of parameters, which know no batch.
type MemoryLine struct {
	Fixed     bytesize.Bytes `json:"fixed"`
	PerSample bytesize.Bytes `json:"per_sample"`
	From      int64          `json:"from_batch"`
}

// At is the peak at a batch, as the line has it.
func (l *MemoryLine) At(batch int64) bytesize.Bytes {
	return l.Fixed + bytesize.Bytes(batch)*l.PerSample
}

// onLine is how far from the line a peak may be that it holds for, as a share.
const onLine = 0.02

// Holds reports whether a batch's peak is on the line.
func (l *MemoryLine) Holds(batch int64, peak bytesize.Bytes) bool {
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
func (b *Batches) MemoryLine(batch int64) (*MemoryLine, error) {
	one, err := b.settledPeak(batch)
	if err != nil {
		return nil, err
	}
	two, err := b.settledPeak(2 * batch)
	if err != nil || max(one.bytes, two.bytes) > noLimit { // no memory would be enough
		return nil, err
	}
	slope := two.bytes - one.bytes
	straight := slope > 0
	if straight && one.place != two.place { // which may be where another part of the step takes over
		three, err := b.settledPeak(3 * batch)
		if err != nil {
			return nil, err
		}
		next := three.bytes - two.bytes
		straight = float64(max(next-slope, slope-next)) <= bend*float64(slope)
	}
	if !straight {
		return nil, nil //nolint:nilnil // no line, and nothing wrong
	}
	return &MemoryLine{Fixed: one.bytes - slope, PerSample: slope / bytesize.Bytes(batch), From: batch}, nil
}

// settledPeak is the most that is allocated in a settled step, and where in the
// step that is.
type settledPeak struct {
	bytes bytesize.Bytes
	place place
}

// place is a part of a step and a module of the model.
type place struct {
	phase  phase
	module string
}

// settledPeak runs a batch, unless it ran before, as far as it takes to know.
func (b *Batches) settledPeak(batch int64) (peak settledPeak, err error) {
	if p := b.programs[variant{batch: batch}]; p != nil {
		return p.settledPeak(), nil
	}
	defer recoverError(b.w, &err)
	p, err := b.run(program{brief: true}, batch)
	if err != nil {
		return settledPeak{}, err
	}
	defer p.discard()
	return p.settledPeak(), nil
}

// unusedSizes are what sizes of allocations were in.
var unusedSizes = sync.Pool{New: func() any { return new([]bytesize.Bytes) }}

// settledPeak looks at the last step.
func (p *program) settledPeak() settledPeak {
	var live, peak bytesize.Bytes
	at, last := 0, p.stepEnds[len(p.stepEnds)-2]
	events := p.requests().Events
	unused := unusedSizes.Get().(*[]bytesize.Bytes)
	sizes := slices.Grow((*unused)[:0], len(events)/3+1)
	for i := range events {
		switch e := &events[i]; e.Action {
		case trace.Alloc:
			size := roundedSize(e.Size)
			sizes = append(sizes, size)
			live = min(live+size, noLimit+1)
		case trace.FreeCompleted:
			live -= sizes[e.ID]
		default:
		}
		if i >= last && live > peak {
			peak, at = live, i
		}
	}
	*unused = sizes
	unusedSizes.Put(unused)
	phase, _ := p.spanOf(at)
	out := settledPeak{bytes: peak, place: place{phase: phase}}
	if frames := p.requests().Stacks.Frames(events[at].Stack); len(frames) > 0 {
		out.place.module = frames[0].Name
	}
	return out
}
