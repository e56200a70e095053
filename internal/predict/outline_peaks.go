package predict

import (
	"math"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// partPeak is the most that is allocated in a part of a step.
type partPeak struct {
	once bytesize.Bytes
	// again is the same in a later pass of a step that accumulates gradients, 0
	// in what comes after the passes.
	again bytesize.Bytes
}

// partPeaks looks at the parts of the last step, which has one pass. Forward and
// backward are looked at at their beginning and at their end, since what grows or
// shrinks from layer to layer is highest in the first or in the last. Lengths are how
// many events that is, nil for all: in models with more layers it is the same layers.
// The gradients that backward leaves are there already in a later pass, whose own are
// added to them.
func (p *program) partPeaks(lengths []int) []partPeak {
	spans := p.lastSpans()
	count := newLiveCount(p, p.stepEnds[len(p.stepEnds)-2])
	count.until(spans[0].from)
	parts, passes := make([]partPeak, 0, 2*len(spans)), 0 // parts of the pass
	before, gradients := count.bytes, bytesize.Bytes(0)
	for i, s := range spans {
		end := p.endOf(spans, i)
		count.left, count.end = 0, math.MaxInt
		if s.phase != forward && s.phase != backward {
			parts = append(parts, count.until(end))
			continue
		}
		if s.phase == backward {
			count.end = end
		}
		length := end - s.from
		if i < len(lengths) {
			length = min(length, lengths[i])
		}
		beginning := count.until(s.from + length/2)
		count.until(end - (length - length/2))
		parts = append(parts, beginning, count.until(end))
		if s.phase == backward {
			gradients, passes = count.bytes-before, len(parts)
		}
	}
	for i := range parts {
		if i < passes {
			parts[i].again += gradients
		} else {
			parts[i].again = 0
		}
	}
	return parts
}

// lastSpans are those of the last step.
func (p *program) lastSpans() []span {
	from := p.stepEnds[len(p.stepEnds)-2]
	return p.spans[slices.IndexFunc(p.spans, func(s span) bool { return s.from >= from }):]
}

// endOf is the event at which one of the last spans ends.
func (p *program) endOf(spans []span, i int) int {
	if i+1 < len(spans) {
		return spans[i+1].from
	}
	return p.events()
}

// lengths are how many events the parts of the last step have.
func (p *program) lengths() (lengths []int) {
	spans := p.lastSpans()
	for i, s := range spans {
		lengths = append(lengths, p.endOf(spans, i)-s.from)
	}
	return lengths
}

// optimizerState is what the optimizer keeps.
func (p *program) optimizerState() (bytes bytesize.Bytes) {
	for _, l := range p.lives() {
		if l.cause == trace.OptimizerState && int(l.died) == p.events() {
			bytes += roundedSize(l.size)
		}
	}
	return bytes
}

// liveCount goes through the events of a process and counts what is allocated.
type liveCount struct {
	events []trace.Event
	lives  []life
	from   int // the first event of a step
	at     int
	bytes  bytesize.Bytes
	left   bytesize.Bytes // what was made before the event end, and is there then
	end    int
}

// newLiveCount counts the workspaces that a step leaves, which libraries keep, from the
// beginning: they are there before it in a process that had one like it.
func newLiveCount(p *program, from int) *liveCount {
	c := &liveCount{events: p.requests().Events, lives: p.lives(), from: from}
	for i := range c.lives {
		if l := &c.lives[i]; c.keeps(l) {
			c.bytes += roundedSize(l.size)
		}
	}
	return c
}

// keeps reports whether the step made a workspace that stays.
func (c *liveCount) keeps(l *life) bool {
	return l.cause == trace.Workspace && int(l.born) >= c.from && int(l.died) == len(c.events)
}

// until advances to an event. It returns the most that is allocated on the way, and
// again that without what is left.
func (c *liveCount) until(event int) partPeak {
	peak := partPeak{once: c.bytes, again: c.bytes - c.left}
	for ; c.at < event; c.at++ {
		e := &c.events[c.at]
		switch e.Action {
		case trace.Alloc:
			if c.keeps(&c.lives[e.ID]) {
				continue
			}
			size := roundedSize(e.Size)
			c.bytes = min(c.bytes+size, noLimit+1)
			if int(c.lives[e.ID].died) >= c.end {
				c.left += size
			}
			peak.once, peak.again = max(peak.once, c.bytes), max(peak.again, c.bytes-c.left)
		case trace.FreeCompleted:
			c.bytes -= roundedSize(c.lives[e.ID].size)
		default:
		}
	}
	return peak
}

// roundedSize is the size of the block that an allocation gets (kMinBlockSize,
// c10/core/AllocatorConfig.h); where the allocator hands out a larger one is left
// aside.
func roundedSize(size int64) bytesize.Bytes {
	const unit = 512
	return bytesize.Bytes((size + unit - 1) / unit * unit)
}
