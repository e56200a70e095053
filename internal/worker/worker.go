// Package worker is the loop on a GPU host: it says which cards are there,
// takes jobs for them, one at a time for each card, and reports what came of
// them. What a job is about it does not know; a Runner does.
//
// A worker may be killed, may hang or lose its network at any time. Then its
// jobs go to others, and what it still reports does not count; package job
// sees to that. What this package adds is to stop in time: when a job is
// cancelled or was given to somebody else, when it takes too long, and when
// the worker itself is told to end.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"memorymark/internal/job"
)

// Runner does a job: it gets the payload, says how it goes, and returns the
// result. Its error is the reason that users read. It must stop soon after the
// context ends.
type Runner func(ctx context.Context, payload json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error)

// Slot is a card and what does its jobs.
type Slot struct {
	Card job.Card
	Run  Runner
}

// Config says what a worker has.
type Config struct {
	Slots   []Slot
	Host    string // its name on the page; empty for the machine's
	Version string // of the program
	// Limit is how long a job may take; 0 means DefaultLimit.
	Limit time.Duration
	// Drain is how long running jobs may go on when the context ends, before
	// they are given back; 0 means at once.
	Drain time.Duration
	// Resident workers do not end when a server drains them; they wait to be
	// resumed.
	Resident bool
	// Log is told what happens; nil means nobody.
	Log *slog.Logger
}

// DefaultLimit is more than any search for a batch has taken.
const DefaultLimit = time.Hour

// stopTime is how long a Runner may take to stop. One that does not has the
// card, so the worker cannot go on.
const stopTime = 15 * time.Second

// reportTime is how long a result is worth waiting for a server that is away.
const reportTime = 2 * time.Minute

// StuckError says that a Runner did not stop. The process should end: what it
// started still has the card.
type StuckError struct{ Job string }

func (e *StuckError) Error() string {
	return fmt.Sprintf("job %s does not stop and still holds its GPU; restart the worker", e.Job)
}

// worker is one run of Run.
type worker struct {
	Config
	link *job.Link
	stop time.Duration // stopTime, shorter in tests

	mu      sync.Mutex
	jobs    []string      // what each slot works on
	ending  bool          // by its context, for good
	drained bool          // by a server, which may resume it
	resting int           // slots that wait, because it is drained
	turn    chan struct{} // is closed when drained changes
	news    chan struct{} // receives when there is something to announce
}

// Run works until the context ends, then lets running jobs end, gives back
// those that do not, and returns nil. It does the same when a server drains it,
// except that running jobs may take their time. It returns an error if it
// cannot go on.
func Run(ctx context.Context, link *job.Link, c Config) error {
	return newWorker(link, c).run(ctx)
}

func newWorker(link *job.Link, c Config) *worker {
	if c.Limit == 0 {
		c.Limit = DefaultLimit
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Host == "" {
		c.Host, _ = os.Hostname() //nolint:errcheck // a worker without a name works as well
	}
	c.Log = c.Log.With("worker", link.ID())
	return &worker{Config: c, link: link, stop: stopTime, jobs: make([]string, len(c.Slots)), turn: make(chan struct{}), news: make(chan struct{}, 1)}
}

func (w *worker) run(ctx context.Context) error {
	if len(w.Slots) == 0 {
		return errors.New("a worker needs a GPU; see memorymark doctor")
	}
	// A slot that is stuck ends the others, and so does the last that rests.
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	defer context.AfterFunc(taking, w.end)()
	stopListening, err := w.link.OnDrain(w.drain)
	if err != nil {
		return err
	}
	defer stopListening()
	announcing, stopAnnouncing := context.WithCancel(context.WithoutCancel(ctx))
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		w.announce(announcing)
	}()

	errs := make([]error, len(w.Slots))
	var slots sync.WaitGroup
	for i := range w.Slots {
		slots.Go(func() {
			if errs[i] = w.serve(taking, i, stopTaking); errs[i] != nil {
				stopTaking()
			}
		})
	}
	slots.Wait()
	stopAnnouncing()
	<-announced
	return errors.Join(errs...)
}

// serve takes one job after the other for a slot.
func (w *worker) serve(ctx context.Context, slot int, end func()) error {
	card := w.Slots[slot].Card.ID
	offers, stop, err := w.link.Offers(card)
	if err != nil {
		return err
	}
	defer stop()
	// Offers may be missed, and jobs that come back are not offered.
	look := time.NewTicker(max(w.link.Lease()/20, 50*time.Millisecond))
	defer look.Stop()
	for {
		turn := w.rest(ctx, end)
		if ctx.Err() != nil {
			return nil
		}
		lease, err := w.link.Take(ctx, card)
		switch {
		case lease != nil:
			if err := w.work(ctx, slot, lease); err != nil {
				return err
			}
			continue
		case err != nil && ctx.Err() == nil:
			w.Log.Warn("take a job", "card", card, "error", err)
		}
		select {
		case <-offers:
		case <-look.C:
		case <-turn:
		case <-ctx.Done():
		}
	}
}

// announce says that the worker is there until the context ends, then that it
// left.
func (w *worker) announce(ctx context.Context) {
	beat := time.NewTicker(w.link.Lease() / 3)
	defer beat.Stop()
	for {
		once, cancel := context.WithTimeout(ctx, w.link.Lease()/3)
		if err := w.link.Announce(once, w.describe()); err != nil && ctx.Err() == nil {
			w.Log.Warn("announce", "error", err)
		}
		cancel()
		select {
		case <-beat.C:
		case <-w.news:
		case <-w.link.Restored():
		case <-ctx.Done():
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if err := w.link.Leave(leaving); err != nil {
				w.Log.Warn("leave", "error", err)
			}
			return
		}
	}
}

func (w *worker) describe() job.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := job.Worker{Host: w.Host, Version: w.Version, Draining: w.drained || w.ending, Resident: w.Resident}
	for i, s := range w.Slots {
		s.Card.Job = w.jobs[i]
		out.Cards = append(out.Cards, s.Card)
		if w.jobs[i] != "" {
			out.Jobs = append(out.Jobs, w.jobs[i])
		}
	}
	return out
}

// set notes what a slot works on.
func (w *worker) set(slot int, id string) {
	w.mu.Lock()
	w.jobs[slot] = id
	w.mu.Unlock()
	w.tell()
}

func (w *worker) tell() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}
