package torch

import "slices"

// Device is what operators need to know of the card.
type Device struct {
	SMs          int // multiprocessors
	ThreadsPerSM int // resident threads of each
	Major, Minor int // compute capability
}

// This file records every query of the card, so that one run serves other cards,
// too. If a card gives the same answer to every query that decides control flow, the
// process runs the same on it and requests the same memory, except for the sizes of
// some scratch. Queries capture numbers and no tensors: they are evaluated again
// after the process has ended.

// questions are the queries of a process.
type questions struct {
	decisions []decision
	sized     []sizedEvent
}

// decision is a query whose answer decides control flow.
type decision struct {
	ask    func(Device) int64
	answer int64
}

// sizedEvent is an allocation whose size the card decides.
type sizedEvent struct {
	event int
	size  func(Device) int64
}

// KeepQuestions records queries of the card from now on.
func (t *Torch) KeepQuestions() { t.questions = new(questions) }

// ask queries a number that decides control flow.
func (t *Torch) ask(question func(Device) int64) int64 {
	answer := question(t.device)
	if t.questions != nil {
		t.questions.decisions = append(t.questions.decisions, decision{question, answer})
	}
	return answer
}

// is queries a property that decides control flow.
func (t *Torch) is(ask func(Device) bool) bool {
	yes := ask(t.device)
	if t.questions != nil {
		t.questions.decisions = append(t.questions.decisions, decision{func(d Device) int64 { return number(ask(d)) }, number(yes)})
	}
	return yes
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// allocateSized allocates a size that depends on the card's kernels.
func (t *Torch) allocateSized(size func(Device) int64) *storage {
	if t.onCPU {
		return t.allocate(0)
	}
	bytes := size(t.device)
	switch {
	case t.questions == nil:
	case bytes == 0 || t.meta != nil: // there is no event
		t.ask(size)
	default:
		t.questions.sized = append(t.questions.sized, sizedEvent{len(t.trace.Events), size})
	}
	return t.allocate(bytes)
}

// repeat repeats the queries of a range of events, which recur the given number
// of events later.
func (q *questions) repeat(from, to, later int) {
	if q == nil {
		return
	}
	first, _ := slices.BinarySearchFunc(q.sized, from, func(s sizedEvent, event int) int { return s.event - event })
	for _, s := range q.sized[first:] {
		if s.event >= to {
			break
		}
		q.sized = append(q.sized, sizedEvent{s.event + later, s.size})
	}
}

// SizesOn returns the card-dependent sizes on another card. It reports false if
// the process would, or might, run differently there.
func (t *Torch) SizesOn(d Device) ([]int64, bool) {
	for _, q := range t.questions.decisions {
		if q.ask(d) != q.answer {
			return nil, false
		}
	}
	sizes := make([]int64, len(t.questions.sized))
	for i, s := range t.questions.sized {
		if sizes[i] = s.size(d); sizes[i] == 0 {
			return nil, false
		}
	}
	return sizes, true
}

// SetSizes changes the trace to that of a card with these sizes.
func (t *Torch) SetSizes(sizes []int64) {
	for i, s := range t.questions.sized {
		t.trace.Events[s.event].Size = sizes[i]
	}
}

// These test for a feature: Volta's tensor cores, Ampere's bfloat16, and Hopper and
// Blackwell of data centers.
func (d Device) isVolta() bool     { return d.Major >= 7 }
func (d Device) isAmpere() bool    { return d.Major >= 8 }
func (d Device) isHopper() bool    { return d.Major == 9 && d.Minor == 0 }
func (d Device) isBlackwell() bool { return d.Major == 10 }
