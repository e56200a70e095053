package predict

import (
	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Batches runs a workload at different batches on a card, each only once.
type Batches struct {
	options  Options
	w        *workload.Workload
	card     *gpu.Card
	programs map[variant]*program
	events   int // of all programs
	latest   int // of the latest one
}

// variant is a batch, and the end of a race (Late).
type variant struct {
	batch int64
	late  bool
}

// NewBatches returns the batches of a workload, whose own batch does not matter. A
// nil budget is without bound.
func NewBatches(w *workload.Workload, card *gpu.Card, e *workbudget.Budget) *Batches {
	return newBatches(w, card, Options{Budget: e})
}

// Spend has what follows spend from a budget.
func (b *Batches) Spend(e *workbudget.Budget) { b.options.Budget = e }

func newBatches(w *workload.Workload, card *gpu.Card, o Options) *Batches {
	return &Batches{options: o, w: w, card: card, programs: make(map[variant]*program)}
}

// Process runs a batch under the workload's limit, or the card's.
func (b *Batches) Process(batch int64) (*Process, error) {
	s, err := b.process(variant{batch: batch})
	if err == nil && b.options.Steps == 0 && s.Fits() && races(b.w) {
		s.late, err = b.process(variant{batch, true})
	}
	return s, err
}

func (b *Batches) process(v variant) (*Process, error) {
	p, err := b.program(v)
	if err != nil {
		return nil, err
	}
	return b.newProcess(p, Limit(b.w, b.card))
}

// maxEvents bounds what is kept, to a hundred megabytes.
const maxEvents = 2 << 20

// program runs a batch, unless it ran before.
func (b *Batches) program(v variant) (p *program, err error) {
	if p = b.programs[v]; p != nil {
		return p, nil
	}
	defer recoverError(b.w, &err)
	if b.events+b.latest > maxEvents { // before there is another
		clear(b.programs)
		b.events = 0
	}
	if p, err = b.run(program{late: v.late}, v.batch); err != nil {
		return nil, err
	}
	b.latest = p.events()
	b.events += b.latest
	b.programs[v] = p
	return p, nil
}

// run runs a program at a batch: its first rank, or the one that needs the most
// where each has another part of the model.
func (b *Batches) run(p program, batch int64) (*program, error) {
	at := *b.w
	at.Batch = batch
	p.w, p.builder, p.everyPass = &at, b.options.Build, b.options.Build != nil
	n := b.options.Steps
	if n == 0 {
		n = stepsFor(b.w)
	}
	if isPipeline(b.w) {
		return b.heaviestStage(p, n)
	}
	return p.run(deviceOf(b.card), n, b.options.Budget)
}

// discard returns the memory of what is kept for reuse by other programs.
func (b *Batches) discard() {
	for _, p := range b.programs {
		p.discard()
	}
	clear(b.programs)
	b.events = 0
}

// FitsWithin reports whether a batch trains under a limit. One that cannot be
// predicted does not.
func (b *Batches) FitsWithin(batch int64, limit bytesize.Bytes) bool {
	fits, err := b.fits(batch, limit)
	return err == nil && fits
}

// fits reports whether a batch trains under a limit, in either end of a race.
func (b *Batches) fits(batch int64, limit bytesize.Bytes) (bool, error) {
	out, err := b.play(variant{batch: batch}, limit)
	if err == nil && out.Fits() && races(b.w) {
		out, err = b.play(variant{batch, true}, limit)
	}
	return err == nil && out.Fits(), err
}

// play runs a batch under one limit only.
func (b *Batches) play(v variant, limit bytesize.Bytes) (*allocator.Outcome, error) {
	p, err := b.program(v)
	if err != nil {
		return nil, err
	}
	return (&Process{program: p, card: b.card, batches: b}).play(limit)
}

// Speed says how fast batches are up to the given one, in samples per second. What a
// step does is linear in the batch, so two batches tell it of all.
func (b *Batches) Speed(largest int64) (func(batch int64) float64, error) {
	const small = 8
	large := max(largest, small+1)
	programs := make(map[int64]*program)
	for _, batch := range []int64{small, large} {
		p, err := b.program(variant{batch: batch})
		if err != nil {
			return nil, err
		}
		programs[batch] = p
	}
	line := newTimingLine(programs[small].stepTiming(), programs[large].stepTiming())
	return func(batch int64) float64 {
		share := float64(batch-small) / float64(large-small)
		return float64(batch) / line.at(share).Seconds(b.card, b.w.Parallel, int64(b.w.Accumulate)).Total()
	}, nil
}
