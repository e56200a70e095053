package torch

import "slices"

// Device is what operators need to know of the card.
type Device struct {
	SMs          int // multiprocessors
	ThreadsPerSM int // resident threads of each
	Major, Minor int // compute capability
}

// This file keeps what a process asked about its card, so that one run tells of
// other cards, too. Where a card answers everything alike that decides something,
// the process does the same on it, and asks for the same memory but for the sizes of
// some scratch. Questions have numbers in them and no tensors: they are asked again
// when the process has ended.

// questions are those of a process.
type questions struct {
	decisions []decision
	sized     []sizedEvent
}

// decision is a question whose answer decides what a process does.
type decision struct {
	ask    func(Device) int64
	answer int64
}

// sizedEvent is an allocation whose size the card decides.
type sizedEvent struct {
	event int
	size  func(Device) int64
}

// KeepQuestions keeps what is asked about the card from now on.
func (t *Torch) KeepQuestions() { t.questions = new(questions) }

// ask asks for a number that decides what the process does.
func (t *Torch) ask(question func(Device) int64) int64 {
	answer := question(t.device)
	if t.questions != nil {
		t.questions.decisions = append(t.questions.decisions, decision{question, answer})
	}
	return answer
}

// is asks something that decides what the process does.
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

// allocateSized is allocate of as many bytes as the card's kernels take.
func (t *Torch) allocateSized(size func(Device) int64) *storage {
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

// repeat asks again what was asked for the events from one to another, which are
// repeated so many events later.
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

// SizesOn returns the sizes that the card decides as they are on another one. It
// reports false if the process does something else there, or may.
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

// SetSizes makes the trace that of a card with such sizes.
func (t *Torch) SetSizes(sizes []int64) {
	for i, s := range t.questions.sized {
		t.trace.Events[s.event].Size = sizes[i]
	}
}

// These are the cards that have something: Volta's tensor cores, Ampere's bfloat16,
// and Hopper and Blackwell as data centers have them.
func (d Device) isVolta() bool     { return d.Major >= 7 }
func (d Device) isAmpere() bool    { return d.Major >= 8 }
func (d Device) isHopper() bool    { return d.Major == 9 && d.Minor == 0 }
func (d Device) isBlackwell() bool { return d.Major == 10 }
