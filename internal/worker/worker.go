// Package worker is the loop on a GPU host: it says which cards are there,
// takes jobs for them, one at a time for each card, and reports what came of
// them. What a job is about it does not know; a Runner does.
//
// A worker may be killed, may hang or lose its network at any time. Then its
// jobs go to others, and what it still reports does not count; package job
// sees to that. What this package adds is to stop in time: when a job is
// cancelled or was given to another worker, when it takes too long, and when
// the worker itself is told to end.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"memorymark/internal/job"
)

// Server is where a worker takes its jobs: a Client, or a queue of this process
// (Local).
type Server interface {
	Join(ctx context.Context, a job.Announcement) (job.Membership, error)
	Heartbeat(ctx context.Context, worker string, a job.Announcement, wait time.Duration) (job.Orders, error)
	Take(ctx context.Context, worker, card string, wait time.Duration) (*job.Job, error)
	Progress(ctx context.Context, worker string, p job.Progress) error
	End(ctx context.Context, worker string, e job.Ending) error
	Leave(ctx context.Context, worker string) error
}

// Local is a queue of this process, whose workers need no token.
type Local struct{ *job.Queue }

// Join implements Server.
func (l Local) Join(ctx context.Context, a job.Announcement) (job.Membership, error) {
	return l.Queue.Join(ctx, "", a)
}

// Heartbeat implements Server.
func (l Local) Heartbeat(ctx context.Context, worker string, a job.Announcement, wait time.Duration) (job.Orders, error) {
	return l.Queue.Heartbeat(ctx, "", worker, a, wait)
}

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
	// Drain is how long running jobs may continue when the context ends, before
	// they are given back; 0 means at once.
	Drain time.Duration
	// Resident workers do not end when a server drains them; they wait to be
	// resumed.
	Resident bool
	// Log is told what happens; nil discards it.
	Log *slog.Logger
}

// DefaultLimit is more than any search for a batch has taken.
const DefaultLimit = time.Hour

const (
	// stopTime is how long a Runner may take to stop. One that does not has the
	// card, so the worker cannot continue.
	stopTime = 15 * time.Second
	// reportTime is how long a result is worth waiting for a server that is away.
	reportTime = 2 * time.Minute
	// joinTime is how long a worker tries to join a server that is there and cannot
	// answer. answerTime is how long a server may take beyond what it was asked to wait.
	joinTime   = 15 * time.Second
	answerTime = 15 * time.Second
	// takeTime is how long one request for a job waits for it.
	takeTime = 20 * time.Second
	// tryTime is how long one try may take: an answer that went to a broken
	// connection never comes.
	tryTime = 30 * time.Second
	// retryTime is the longest pause before something is tried again.
	retryTime = time.Second
)

// StuckError says that a Runner did not stop. The process should end: what it
// started still has the card.
type StuckError struct{ Job string }

func (e *StuckError) Error() string {
	return fmt.Sprintf("job %s does not stop and still holds its GPU; restart the worker", e.Job)
}

// RefusedError says that the server does not let the worker in any more: its token was revoked, has
// expired, or is no worker's.
type RefusedError struct{ err error }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the worker's token is no longer accepted, so it takes no more jobs: %v", e.err)
}

func (e *RefusedError) Unwrap() error { return e.err }

// Worker is a member of a server's fleet.
type Worker struct {
	Config
	server Server
	id     string
	lease  time.Duration
	stop   time.Duration // stopTime, shorter in tests

	mu      sync.Mutex
	running []*attempt    // what each slot works on, nil for nothing
	ending  bool          // by its context, for good
	drained bool          // by a server, which may resume it
	resting int           // slots that wait, because it is drained
	turn    chan struct{} // is closed when drained changes
	news    chan struct{} // receives when there is something to announce
}

// Join makes a member of a server's fleet, which must then Run.
func Join(ctx context.Context, server Server, c Config) (*Worker, error) {
	if len(c.Slots) == 0 {
		return nil, errors.New("a worker needs a GPU; see memorymark doctor")
	}
	if c.Limit == 0 {
		c.Limit = DefaultLimit
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Host == "" {
		c.Host, _ = os.Hostname() //nolint:errcheck // a worker without a name works as well
	}
	w := &Worker{Config: c, server: server, stop: stopTime, running: make([]*attempt, len(c.Slots)), turn: make(chan struct{}), news: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	err := insist(ctx, func(ctx context.Context) error {
		m, err := server.Join(ctx, w.describe())
		w.id, w.lease = m.ID, time.Duration(m.LeaseSeconds*float64(time.Second))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	if w.id == "" || w.lease <= 0 {
		return nil, errors.New("join: the answer is not a MemoryMark server's")
	}
	w.Log = c.Log.With("worker", w.id)
	return w, nil
}

// insist calls a function until it succeeds, the context ends, or there is no use
// in it.
func insist(ctx context.Context, f func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, tryTime)
		err := f(once)
		cancel()
		if err == nil || permanent(err) || !pause(ctx) {
			return err
		}
	}
}

// pause waits before something is tried again, and reports whether the context
// has not ended. Workers that lost the same server do not come back at the same moment.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(retryTime/4 + rand.N(retryTime*3/4)):
		return true
	case <-ctx.Done():
		return false
	}
}

// ID is the name under which the worker takes jobs.
func (w *Worker) ID() string { return w.id }

// Run works until the context ends, then lets running jobs end, gives back
// those that do not, and returns nil. It does the same when a server drains the
// worker, except that running jobs may take their time. It returns an error if it
// cannot continue.
func (w *Worker) Run(ctx context.Context) error {
	// A slot that is stuck ends the others, and so does the last that rests.
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	defer context.AfterFunc(taking, w.end)()
	beating, stopBeating := context.WithCancel(context.WithoutCancel(ctx))
	var beats sync.WaitGroup
	beats.Go(func() { w.beat(beating) })

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
	stopBeating()
	beats.Wait()
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := w.server.Leave(leaving, w.id); err != nil {
		w.Log.Warn("leave", "error", err)
	}
	return errors.Join(errs...)
}

// serve takes one job after the other for a slot.
func (w *Worker) serve(ctx context.Context, slot int, end func()) error {
	card := w.Slots[slot].Card.ID
	for ctx.Err() == nil {
		turn := w.rest(ctx, end)
		j, err := w.take(ctx, card, turn)
		switch {
		case j != nil:
			if err := w.work(ctx, slot, *j); err != nil {
				return err
			}
		case errors.Is(err, job.ErrNoWorker):
			w.tell() // the server was restarted, and is to know this worker again
			pause(ctx)
		case refused(err):
			return &RefusedError{err}
		case err != nil:
			w.Log.Warn("take a job", "card", card, "error", err)
			pause(ctx)
		}
	}
	return nil
}

// take waits for a job, or until the worker is drained or ends.
func (w *Worker) take(ctx context.Context, card string, turn <-chan struct{}) (*job.Job, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-turn:
			cancel()
		case <-ctx.Done():
		}
	}()
	j, err := w.server.Take(ctx, w.id, card, takeTime)
	if j == nil && ctx.Err() != nil {
		return nil, nil //nolint:nilerr // no one waits for it any more
	}
	return j, err
}

// beat says that the worker is there, and does as it is told, until the context
// ends.
func (w *Worker) beat(ctx context.Context) {
	for ctx.Err() == nil {
		interrupted, err := w.heartbeat(ctx)
		if err != nil && !interrupted && ctx.Err() == nil {
			// The work continues: if no one else takes the jobs, their results count.
			w.Log.Warn("heartbeat", "error", err)
			pause(ctx)
		}
	}
}

// heartbeat waits for orders. It is interrupted by what the server should know.
func (w *Worker) heartbeat(beating context.Context) (interrupted bool, err error) {
	ctx, cancel := context.WithTimeout(beating, w.lease/2)
	defer cancel()
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case <-w.news:
			interrupted = true
			cancel()
		case <-ctx.Done():
		}
	})
	orders, err := w.server.Heartbeat(ctx, w.id, w.describe(), w.lease/3)
	cancel()
	listening.Wait()
	for _, s := range orders.Stop {
		w.lose(s)
	}
	if orders.Drain != nil && !w.drain(*orders.Drain) {
		pause(beating) // the server repeats it at once: the worker ends, and cannot take jobs again
	}
	return interrupted, err
}

func (w *Worker) describe() job.Announcement {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := job.Announcement{Host: w.Host, Version: w.Version, Draining: w.drained || w.ending, Resident: w.Resident}
	for i, s := range w.Slots {
		if a := w.running[i]; a != nil {
			s.Card.Job = a.job.ID
			if !a.lost {
				s.Card.Attempt = a.job.Attempt
			}
		}
		out.Cards = append(out.Cards, s.Card)
	}
	return out
}

// set notes what a slot works on.
func (w *Worker) set(slot int, a *attempt) {
	w.mu.Lock()
	w.running[slot] = a
	w.mu.Unlock()
	w.tell()
}

// lose stops an attempt whose lease has ended.
func (w *Worker) lose(s job.Stop) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.running {
		if a == nil || a.job.ID != s.Job || a.job.Attempt != s.Attempt {
			continue
		}
		a.lost = true
		if s.Cancelled {
			a.stop(job.ErrCancelled)
		} else {
			a.stop(job.ErrLost)
		}
	}
}

func (w *Worker) tell() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}
