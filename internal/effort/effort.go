// Package effort bounds what an answer may cost: how much work is put into it,
// and whether anybody still waits for it. Those who compute spend a little at a
// time, thousands of events apart, so that asking costs nothing.
package effort

import (
	"errors"
	"sync"
)

// OfQuestion is what the answer to one question may take, in events that an
// allocator plays: a tenth of a microsecond each, so some seconds of a core. What
// takes longer than an event spends as many as it takes. Comparing a model of a
// hundred layers on every card takes less.
const OfQuestion = 50_000_000

// OfCommand is what a question may take that a user asks of a machine of their own,
// and waits for: some minutes of a core.
const OfCommand = 40 * OfQuestion

// ErrTooMuch says that an answer takes more work than it may.
var ErrTooMuch = errors.New("this question needs too much computation; use fewer layers, passes, batches or rows")

// Effort is what the parts of one answer may take together. They may run at the
// same time. A nil effort has no bound.
type Effort struct {
	stop  func() error
	whole *Effort // that this one spends from, nil if it is one itself
	spare int64   // what it leaves of that

	all  int64 // that there was
	mu   sync.Mutex
	left int64
	err  error // why it ended, nil while it goes on
}

// New returns an effort of so many events, played or replayed. Stop says why to
// give up, nil to go on, as a context's Err does; it may be nil.
func New(events int64, stop func() error) *Effort {
	return &Effort{all: events, left: events, stop: stop}
}

// Spend takes from the effort what is about to be done. Once it has failed it
// fails for ever: what was computed in part is no answer.
func (e *Effort) Spend(events int) error {
	switch {
	case e == nil:
		return nil
	case e.whole == nil:
		return e.spend(int64(events), 0)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = e.whole.spend(int64(events), e.spare)
	}
	return e.err
}

// Sparing returns an effort that spends from this one, and leaves so many events of it
// to others. If it ends because that is all there is, this one goes on.
func (e *Effort) Sparing(events int64) *Effort { return &Effort{whole: e, spare: events} }

// spend takes events if some are left to spare.
func (e *Effort) spend(events, spare int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil && e.stop != nil {
		e.err = e.stop()
	}
	if e.err == nil && spare > 0 && e.left-events < spare {
		return ErrTooMuch
	}
	if e.left -= events; e.err == nil && e.left < 0 {
		e.err = ErrTooMuch
	}
	return e.err
}

// Spent is how many events were spent by now.
func (e *Effort) Spent() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all - e.left
}

// Err is why the effort ended, nil if there is some left. An answer counts only
// if it is nil: some of its parts may have been left out.
func (e *Effort) Err() error { return e.Spend(0) }
