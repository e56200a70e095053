package predict

import (
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/torch"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// CardRuns runs one workload on many cards. Its steps run once for cards on which they
// do the same, and on the allocator once for those on which they allocate the same.
type CardRuns struct {
	w       *workload.Workload
	outline *Outline
	owners  Owners // of parameters that ranks share, nil if they are not known
	work    *workbudget.Budget
	runs    []*sharedRun
}

// sharedRun is a program on cards that decide nothing differently in it.
type sharedRun struct {
	programs  []*program // one, or two where there is a race (Late)
	processes []*Process // by the sizes that the cards decide
}

// OnCards runs the workload of the outline, with another batch or number of passes, on
// cards. Owners are those of its parameters, nil if they are not known.
func (o *Outline) OnCards(w *workload.Workload, owners Owners, e *workbudget.Budget) *CardRuns {
	return &CardRuns{w: w, outline: o, owners: owners, work: e}
}

// Process runs the steps on a card without a limit.
func (c *CardRuns) Process(card *gpu.Card) (s *Process, err error) {
	defer recoverError(c.w, &err)
	run, sizes, err := c.run(deviceOf(card))
	if err != nil {
		return nil, err
	}
	for _, s := range run.processes {
		if slices.Equal(s.sizes, sizes[0]) && (s.late == nil || slices.Equal(s.late.sizes, sizes[1])) {
			return s, nil
		}
	}
	b := NewBatches(c.w, card, c.work)
	for i, p := range slices.Backward(run.programs) {
		s = &Process{program: p, card: card, Limit: noLimit, batches: b, sizes: sizes[i], late: s}
		if s.outcome, err = s.play(noLimit); err != nil {
			return nil, err
		}
		s.unlimited = s.outcome
	}
	run.processes = append(run.processes, s)
	return s, nil
}

// run returns programs that do what they would on a card, and the sizes that the
// card decides.
func (c *CardRuns) run(d torch.Device) (*sharedRun, [][]int64, error) {
	for _, r := range c.runs {
		if sizes, ok := r.sizesOn(d); ok {
			return r, sizes, nil
		}
	}
	r := &sharedRun{}
	for _, late := range []bool{false, true} {
		if late && !races(c.w) {
			break
		}
		p, err := (&program{w: c.w, owners: c.owners, late: late, manyCards: true, expected: c.expected()}).run(d, stepsFor(c.w), c.work)
		if err != nil {
			return nil, nil, err
		}
		r.programs = append(r.programs, p)
	}
	c.runs = append(c.runs, r)
	sizes, _ := r.sizesOn(d)
	return r, sizes, nil
}

// sizesOn are the sizes that a card decides. It reports false for a card on which the
// programs may do something else.
func (r *sharedRun) sizesOn(d torch.Device) (sizes [][]int64, ok bool) {
	for _, p := range r.programs {
		of, ok := p.t.SizesOn(d)
		if !ok {
			return nil, false
		}
		sizes = append(sizes, of)
	}
	return sizes, true
}

// expected is about how many events a program has: of the passes of a step, the second
// represents the others.
func (c *CardRuns) expected() int {
	return c.outline.events[0] + stepsFor(c.w)*min(c.w.Accumulate, 2)*c.outline.events[1]
}

// Played is the number of different processes.
func (c *CardRuns) Played() int {
	n := 0
	for _, r := range c.runs {
		n += len(r.processes)
	}
	return n
}

// Events is the number of events that are kept.
func (c *CardRuns) Events() int {
	n := 0
	for _, r := range c.runs {
		for _, p := range r.programs {
			n += p.events()
		}
	}
	return n
}

// Discard drops the events: only Memory and Seconds of processes may be called afterwards.
func (c *CardRuns) Discard() {
	for _, r := range c.runs {
		for _, p := range r.programs {
			p.t.Forget()
		}
	}
}

// Memory is what a process needs without a limit from its first event on: the peak of
// allocated memory, and of what is reserved for it.
func (s *Process) Memory() (allocated, reserved bytesize.Bytes) {
	allocated, reserved = s.unlimited.PeakAllocated, s.unlimited.PeakReserved()
	if s.late != nil {
		a, r := s.late.Memory()
		allocated, reserved = max(allocated, a), max(reserved, r)
	}
	return allocated, reserved
}

// Within is what a process of Cards reserves under a limit, and whether it fits. An
// allocator that never needs more than the limit does not notice it; one that needs less
// than is reserved may return cached memory in time.
func (s *Process) Within(limit bytesize.Bytes) (reserved bytesize.Bytes, fits bool, err error) {
	allocated, reserved := s.Memory()
	switch {
	case reserved <= limit:
		return reserved, true, nil
	case allocated > limit:
		return 0, false, nil
	}
	out, err := s.play(limit)
	if err != nil || !out.Fits() {
		return 0, false, err
	}
	reserved = out.PeakReserved()
	if s.late != nil {
		late, fits, err := s.late.Within(limit)
		return max(reserved, late), fits, err
	}
	return reserved, true, nil
}

// Seconds estimates how long an update of n passes takes on cards that share it so; nil is
// one card.
func (s *Process) Seconds(card *gpu.Card, p *workload.Parallel, passes int64) Seconds {
	return s.program.timing().Seconds(card, p, passes)
}
