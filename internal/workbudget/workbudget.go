// Package workbudget bounds what an answer may cost: how much work is put into it,
// and whether a client still waits for it. Those who compute spend a little at a
// time, thousands of events apart, so that asking costs nothing.
package workbudget

import (
	"errors"
	"sync"
)

// PerQuestion is what the answer to one question may take, in events that an
// allocator plays: a tenth of a microsecond each, so some seconds of a core. What
// takes longer than an event spends as many as it takes. Comparing a model of a
// hundred layers on every card takes less.
const PerQuestion = 50_000_000

// PerCommand is what a question may take that a user asks of a machine of their own,
// and waits for: some minutes of a core.
const PerCommand = 40 * PerQuestion

// ErrTooMuch says that an answer takes more work than it may.
var ErrTooMuch = errors.New("this question needs too much computation; use fewer layers, passes, batches or rows")

// Budget is what the parts of one answer may take together. They may run at the
// same time. A nil budget has no bound.
type Budget struct {
	stop  func() error
	whole *Budget // that this one spends from, nil if it is one itself
	spare int64   // what it leaves of that

	all  int64 // that there was
	mu   sync.Mutex
	left int64
	err  error // why it ended, nil while it lasts
}

// New returns a budget of that many events, played or replayed. Stop says why to
// give up, nil to continue, as a context's Err does; it may be nil.
func New(events int64, stop func() error) *Budget {
	return &Budget{all: events, left: events, stop: stop}
}

// Spend takes from the budget what is about to be done. Once it has failed it
// fails for ever: what was computed in part is no answer.
func (b *Budget) Spend(events int) error {
	switch {
	case b == nil:
		return nil
	case b.whole == nil:
		return b.spend(int64(events), 0)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = b.whole.spend(int64(events), b.spare)
	}
	return b.err
}

// KeepingBack returns a budget that spends from this one, and leaves that many events of it
// to others. If it ends because that is all there is, this one does not end.
func (b *Budget) KeepingBack(events int64) *Budget {
	if b == nil {
		return nil
	}
	return &Budget{whole: b, spare: events}
}

// spend takes events if some are left to spare.
func (b *Budget) spend(events, spare int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && b.stop != nil {
		b.err = b.stop()
	}
	if b.err == nil && spare > 0 && b.left-events < spare {
		return ErrTooMuch
	}
	if b.left -= events; b.err == nil && b.left < 0 {
		b.err = ErrTooMuch
	}
	return b.err
}

// Spent is how many events were spent by now.
func (b *Budget) Spent() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all - b.left
}

// Err is why the budget ended, nil if there is some left. An answer counts only
// if it is nil: some of its parts may have been left out.
func (b *Budget) Err() error { return b.Spend(0) }
