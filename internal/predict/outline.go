package predict

import (
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/models"
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Outline says of every batch what a workload takes at least, and how long, from
// two steps of a batch of one and of two.
type Outline struct {
	Parameters int64
	one, two   sketch
	owners     Owners // of parameters that ranks share, in the model that was run
	lengths    []int  // of the parts of a step, in the first model that was run
	events     [2]int // before the steps, and of a step
	line       timingLine
}

// sketch is a batch of an outline.
type sketch struct {
	peak   bytesize.Bytes // of the second step
	parts  []partPeak     // of the second step
	state  bytesize.Bytes // of the optimizer
	timing Timing
}

// NewOutline runs two small batches of a workload, of one pass, and counts what
// they ask for, without an allocator. If the model's layers repeat, it runs two models
// with fewer of them: every layer adds the same.
func NewOutline(w *workload.Workload, card *gpu.Card, e *workbudget.Budget) (*Outline, error) {
	first, second, periods, ok := models.Shallow(w.Config)
	if !ok || sharesState(w) {
		o, err := wholeOutline(w, nil, card, e)
		return o.timed(), err
	}
	shallow := *w
	shallow.Config = first
	o, err := wholeOutline(&shallow, nil, card, e)
	if err != nil {
		return nil, err
	}
	shallow.Config = second
	deeper, err := wholeOutline(&shallow, o.lengths, card, e)
	if err != nil {
		return nil, err
	}
	return o.towards(deeper, periods).timed(), nil
}

// timed finds the timing of all batches from those of the two.
func (o *Outline) timed() *Outline {
	if o != nil {
		o.line = newTimingLine(o.one.timing, o.two.timing)
		o.one.timing, o.two.timing = Timing{}, Timing{}
	}
	return o
}

// sharesState reports whether ranks divide the optimizer's state among them by whole
// parameters (ZeroRedundancyOptimizer): what a layer adds to a rank is not what the
// next one adds.
func sharesState(w *workload.Workload) bool {
	return w.Parallel != nil && w.Parallel.Kind == workload.ZeRO1
}

// towards is the outline of a model with n periods of layers more, of which
// another one has one. A peak is the highest of several lines in the layers, as it is
// in the batch, so that it is no lower than this.
func (o *Outline) towards(deeper *Outline, periods int64) *Outline {
	return &Outline{
		Parameters: o.Parameters + periods*(deeper.Parameters-o.Parameters),
		one:        o.one.towards(deeper.one, periods), two: o.two.towards(deeper.two, periods),
		events: [2]int{
			o.events[0] + int(periods)*(deeper.events[0]-o.events[0]),
			o.events[1] + int(periods)*(deeper.events[1]-o.events[1]),
		},
	}
}

func (s sketch) towards(deeper sketch, periods int64) sketch {
	out := sketch{
		peak: beyond(s.peak, deeper.peak, 1+periods), state: beyond(s.state, deeper.state, 1+periods),
		timing: s.timing.deeper(deeper.timing, float64(periods)),
	}
	if len(s.parts) != len(deeper.parts) {
		return out
	}
	for i, a := range s.parts {
		b := deeper.parts[i]
		part := partPeak{once: beyond(a.once, b.once, 1+periods), again: beyond(a.again, b.again, 1+periods)}
		out.parts = append(out.parts, part)
		out.peak = max(out.peak, part.once)
	}
	return out
}

// wholeOutline is the outline of a model with all of its layers. Lengths are those of
// partPeaks.
func wholeOutline(w *workload.Workload, lengths []int, card *gpu.Card, e *workbudget.Budget) (o *Outline, err error) {
	defer recoverError(w, &err)
	o = &Outline{lengths: lengths}
	p, err := o.process(w, 1, card, e)
	if err != nil {
		return nil, err
	}
	last := len(p.stepEnds) - 1
	if lengths == nil {
		o.lengths = p.lengths()
	}
	o.Parameters, o.owners, o.one = p.parameters, p.owners, p.sketch(o.lengths)
	o.events = [2]int{p.inputEvents, p.stepEnds[last] - p.stepEnds[last-1]}
	if p.takesOtherBatches() {
		p.stepWith(2)
	} else {
		p.leave()
		if p, err = o.process(w, 2, card, e); err != nil {
			return nil, err
		}
	}
	o.two = p.sketch(o.lengths)
	p.leave()
	return o, nil
}

// process runs steps of a batch until one is as all after it are: the second one, or
// the first of a process whose optimizer has its state already.
func (o *Outline) process(w *workload.Workload, batch int64, card *gpu.Card, e *workbudget.Budget) (*program, error) {
	at := *w
	at.Batch, at.Accumulate = batch, 1
	if primes(w) {
		p := &program{w: &at, owners: o.owners, primed: true}
		if err := p.start(deviceOf(card), 1, e); err != nil || p.trained == p.t.Learning() {
			return p, err
		}
		p.leave() // it has state of parameters that get no gradients
	}
	p := &program{w: &at, owners: o.owners}
	return p, p.start(deviceOf(card), 2, e)
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
func (p *program) startPrimed() {
	p.loop.(*plainLoop).prime()
	p.stepEnds = append(p.stepEnds, p.events())
	from := p.events()
	p.step()
	turnover, lives := trace.TurnoverOf(p.requests().Events[from:]), p.lives()
	left := slices.DeleteFunc(turnover.Left, func(id trace.ID) bool { return lives[id].cause == trace.Workspace })
	p.discardLives()
	if len(left) != len(turnover.Older) || p.t.RanScripts() {
		p.step()
	}
}

// maxContinued is how many events a process may have that continues with another batch.
const maxContinued = 1 << 18

// takesOtherBatches reports whether a step with another batch is what it would be in
// a process that never had this one: nothing is left of the batch but its loss, and
// the next step is no other than the last. A deep model would hold the tensors of too
// many steps.
func (p *program) takesOtherBatches() bool {
	l, plain := p.loop.(*plainLoop)
	return plain && p.events() < maxContinued && l.does.Outputs != workload.OutputsKept && !p.w.Varied() && !p.rebuilds()
}

// stepWith continues with another batch, for a step.
func (p *program) stepWith(batch int64) {
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
	if l.f != nil { // the function continues, and so does what it did last
		l.begin(looping)
	}
	p.stepEnds = append(p.stepEnds, p.events())
	p.began = p.t.Work()
	p.step()
}

// leave ends the process, of which nothing is wanted any more.
func (p *program) leave() {
	p.end()
	p.discard()
}

// sketch is what the last step takes. Lengths are those of partPeaks.
func (p *program) sketch(lengths []int) sketch {
	out := sketch{parts: p.partPeaks(lengths), state: p.optimizerState(), timing: p.timing()}
	for _, part := range out.parts {
		out.peak = max(out.peak, part.once)
	}
	p.discardLives()
	return out
}

// Needs is what a batch takes at least, however many passes there are.
func (o *Outline) Needs(batch int64) bytesize.Bytes { return o.NeedsWith(batch, 1) }

// NeedsWith is that of a batch and a number of passes, by the parts of the step: each has
// a peak of its own, and in later passes there are gradients as well. A peak is the
// highest of several lines in the batch, so the line through two points is below it
// beyond them.
func (o *Outline) NeedsWith(batch, passes int64) bytesize.Bytes {
	most := max(o.one.peak, beyond(o.one.peak, o.two.peak, batch))
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

// NeedsWithoutState is what a batch of one takes at least without the optimizer's state.
func (o *Outline) NeedsWithoutState() bytesize.Bytes { return o.Needs(1) - o.one.state }

// beyond is where the line through a batch of one and of two is at another.
func beyond(one, two bytesize.Bytes, batch int64) bytesize.Bytes {
	return one + bytesize.Bytes(batch-1)*(two-one)
}

// Timing is the work of a batch.
func (o *Outline) Timing(batch int64) Timing {
	return o.line.at(float64(batch - 1))
}
