package predict

import (
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// Outline says of every batch what a workload takes at least, and how long, from
// two steps of a batch of one and of two.
type Outline struct {
	Parameters int64
	one, two   sketch
	homes      Homes  // of parameters that ranks share
	events     [2]int // before the steps, and of a step
}

// sketch is a batch of an outline.
type sketch struct {
	peak   bytesize.Bytes // of the second step
	parts  []partPeak     // of the second step
	timing Timing
}

// partPeak is the most that is allocated in a part of a step.
type partPeak struct {
	once bytesize.Bytes
	// again is the same in a later pass of a step that accumulates gradients, 0
	// in what comes after the passes.
	again bytesize.Bytes
}

// NewOutline runs two small batches of a workload, of one pass, and counts what
// they ask for, without an allocator. Homes are those of its parameters, nil if they
// are not known.
func NewOutline(w *workload.Workload, card *gpu.Card, homes Homes, e *effort.Effort) (o *Outline, err error) {
	defer recovered(w, &err)
	o = &Outline{homes: homes}
	p, err := o.process(w, 1, card, e)
	if err != nil {
		return nil, err
	}
	last := len(p.Steps) - 1
	o.Parameters, o.homes, o.one = p.parameters, p.homes, p.sketch()
	o.events = [2]int{p.InputEvents, p.Steps[last] - p.Steps[last-1]}
	if p.takesOtherBatches() {
		p.stepWith(2)
	} else {
		p.leave()
		if p, err = o.process(w, 2, card, e); err != nil {
			return nil, err
		}
	}
	o.two = p.sketch()
	p.leave()
	return o, nil
}

// process runs steps of a batch until one is as all after it are: the second one, or
// the first of a process whose optimizer has its state already.
func (o *Outline) process(w *workload.Workload, batch int64, card *gpu.Card, e *effort.Effort) (*Process, error) {
	at := *w
	at.Batch, at.Accumulate = batch, 1
	if primes(w) {
		p, err := (&Process{w: &at, homes: o.homes, primed: true}).goOn(deviceOf(card), 1, e)
		if err != nil || p.trained == p.t.Learning() {
			return p, err
		}
		p.leave() // it has state of parameters that get no gradients
	}
	return (&Process{w: &at, homes: o.homes}).goOn(deviceOf(card), 2, e)
}

// primes reports whether what a first step leaves is known without it: gradients are
// gone when a step ends, and nothing is rebuilt in the second one.
func primes(w *workload.Workload) bool {
	return w.Phase == workload.Train && !isPipeline(w) && !w.Loop.IsLibrarys() &&
		w.Loop.OrPlain().ZeroGrad == workload.ZeroAfterStep && !hasBuckets(w) && !w.Varied()
}

// startPrimed does without a first step. The next one runs once more if it did something
// that later ones do not: it left something for good that a model computes, or ran a
// function that was not compiled yet.
func (p *Process) startPrimed() {
	p.loop.(*plainLoop).prime()
	p.Steps = append(p.Steps, p.events())
	from := p.events()
	p.step()
	turnover, lives := trace.TurnoverOf(p.Trace().Events[from:]), p.lives()
	left := slices.DeleteFunc(turnover.Left, func(id trace.ID) bool { return lives[id].cause == trace.Workspace })
	p.forgetLives()
	if len(left) != len(turnover.Older) || p.t.RanScripts() {
		p.step()
	}
}

// mostGoesOn is how many events a process may have that goes on with another batch.
const mostGoesOn = 1 << 18

// takesOtherBatches reports whether a step with another batch is what it would be in
// a process that never had this one: nothing is left of the batch but its loss, and
// the next step is no other than the last. A deep model would hold the tensors of too
// many steps.
func (p *Process) takesOtherBatches() bool {
	l, plain := p.loop.(*plainLoop)
	return plain && p.events() < mostGoesOn && l.does.Outputs != workload.OutputsKept && !p.w.Varied() && !p.rebuilds()
}

// stepWith goes on with another batch, for a step.
func (p *Process) stepWith(batch int64) {
	l := p.loop.(*plainLoop)
	at := *p.w
	at.Batch = batch
	p.w = &at
	l.begin(feeding)
	if l.batch.Labels == l.batch.IDs {
		l.batch.Labels = nil
	}
	l.dropBatch(l.batch)
	l.batch = l.makeBatch(false)
	if l.f != nil { // the function goes on, and so does what it did last
		l.begin(looping)
	}
	p.Steps = append(p.Steps, p.events())
	p.began = p.t.Work()
	p.step()
}

// leave ends the process, of which nothing is wanted any more.
func (p *Process) leave() {
	p.end()
	p.forget()
}

// sketch is what the last step takes.
func (p *Process) sketch() sketch {
	out := sketch{parts: p.partPeaks(), timing: p.Timing()}
	for _, part := range out.parts {
		out.peak = max(out.peak, part.once)
	}
	p.forgetLives()
	return out
}

// Needs is what a batch takes at least, however many passes there are. The peak is
// the highest of several lines in the batch, so the line through two points is below
// it beyond them.
func (o *Outline) Needs(batch int64) bytesize.Bytes { return beyond(o.one.peak, o.two.peak, batch) }

// NeedsWith is that of a batch and so many passes, by the parts of the step: each has
// a peak of its own, and in later passes there are gradients besides.
func (o *Outline) NeedsWith(batch, passes int64) bytesize.Bytes {
	most := o.Needs(batch)
	if len(o.one.parts) != len(o.two.parts) {
		return most
	}
	for i, a := range o.one.parts {
		b := o.two.parts[i]
		most = max(most, beyond(a.once, b.once, batch))
		if passes > 1 {
			most = max(most, beyond(a.again, b.again, batch))
		}
	}
	return most
}

// beyond is where the line through a batch of one and of two is at another.
func beyond(one, two bytesize.Bytes, batch int64) bytesize.Bytes {
	return one + bytesize.Bytes(batch-1)*(two-one)
}

// Timing is the work of a batch.
func (o *Outline) Timing(batch int64) Timing {
	return o.one.timing.Towards(o.two.timing, float64(batch-1))
}

// partPeaks looks at the parts of the last step, which has one pass. The gradients
// that its backward leaves are there already in a later pass, whose own are added
// to them.
func (p *Process) partPeaks() []partPeak {
	from := p.Steps[len(p.Steps)-2]
	count := newLiveCount(p, from)
	spans := p.spans[slices.IndexFunc(p.spans, func(s span) bool { return s.from >= from }):]
	count.until(spans[0].from)
	parts, passes := make([]partPeak, len(spans)), 0 // parts of the pass
	before, gradients := count.bytes, bytesize.Bytes(0)
	for i, s := range spans {
		end := p.events()
		if i+1 < len(spans) {
			end = spans[i+1].from
		}
		peak, without := count.until(end)
		parts[i] = partPeak{once: peak, again: peak}
		if s.phase == backward {
			parts[i].again, gradients, passes = without, count.bytes-before, i+1
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

// liveCount goes through the events of a process and counts what is allocated.
type liveCount struct {
	events []trace.Event
	lives  []life
	from   int // the first event of a step
	at     int
	bytes  bytesize.Bytes
}

// newLiveCount counts the workspaces that a step leaves, which libraries keep, from the
// beginning: they are there before it in a process that had one like it.
func newLiveCount(p *Process, from int) *liveCount {
	c := &liveCount{events: p.Trace().Events, lives: p.lives(), from: from}
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

// until goes on to an event. It returns the most that is allocated on the way, and
// the most without what is made there and left.
func (c *liveCount) until(event int) (peak, without bytesize.Bytes) {
	var left bytesize.Bytes
	peak, without = c.bytes, c.bytes
	for ; c.at < event; c.at++ {
		e := &c.events[c.at]
		switch e.Action {
		case trace.Alloc:
			if c.keeps(&c.lives[e.ID]) {
				continue
			}
			size := roundedSize(e.Size)
			c.bytes = min(c.bytes+size, noLimit+1)
			if int(c.lives[e.ID].died) >= event {
				left += size
			}
			peak, without = max(peak, c.bytes), max(without, c.bytes-left)
		case trace.FreeCompleted:
			c.bytes -= roundedSize(c.lives[e.ID].size)
		default:
		}
	}
	return peak, without
}

// roundedSize is the size of the block that an allocation gets (kMinBlockSize,
// c10/core/AllocatorConfig.h); where the allocator hands out a larger one is left
// aside.
func roundedSize(size int64) bytesize.Bytes {
	const unit = 512
	return bytesize.Bytes((size + unit - 1) / unit * unit)
}
