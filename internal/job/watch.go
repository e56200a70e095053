package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// WatchEvent is something that happened to a job: either its worker said something
// (Data), or its record changed (Job).
type WatchEvent struct {
	// Seq is the number of what the worker said, to continue from with Watch. A
	// change of the record has none: whoever comes back learns the present one.
	Seq     uint64
	Time    time.Time
	Attempt int
	Data    json.RawMessage
	Job     *Job
}

// headerAttempt says which attempt an event is of.
const headerAttempt = "Memorymark-Attempt"

// lostBell is how long a watcher waits if no bell rings. Bells do not get
// lost; if one does, this is the delay.
const lostBell = 5 * time.Second

// Watch returns a job's events: its present record, what its worker said since
// the event with number after (0 for all that is kept), then whatever happens.
// It closes the channel when the job has ended and everything has been
// delivered, when it is deleted, or when the context ends. Events of an attempt
// that was given up do not appear after those of the next.
func (q *Queue) Watch(ctx context.Context, id string, after uint64) (<-chan WatchEvent, error) {
	if _, err := q.get(ctx, id); err != nil {
		return nil, err
	}
	out := make(chan WatchEvent)
	go func() {
		defer close(out)
		w := &watch{q: q, id: id, seq: after, out: out}
		w.run(ctx)
	}()
	return out, nil
}

// Wait waits until a job has ended.
func (q *Queue) Wait(ctx context.Context, id string) (*Job, error) {
	bell, leave := q.bell.listen(id)
	defer leave()
	for {
		r, err := q.get(ctx, id)
		if err != nil || r.State.Ended() {
			return &r.Job, err
		}
		select {
		case <-bell:
		case <-time.After(lostBell):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-q.closing:
			return nil, ErrClosed
		}
	}
}

// ErrClosed ends what waits when the queue is closed.
var ErrClosed = errors.New("the queue was closed")

// watch is one watcher. Bells only say that there is news; what it is comes
// from the engine, so a slow watcher costs nothing and misses nothing.
type watch struct {
	q        *Queue
	id       string
	seq      uint64 // of the last event delivered
	attempt  int    // of the last event delivered
	revision uint64 // of the last record delivered
	out      chan<- WatchEvent
}

func (w *watch) run(ctx context.Context) {
	bell, leave := w.q.bell.listen(w.id)
	defer leave()
	for {
		ended, err := w.news(ctx)
		switch {
		case ended || errors.Is(err, ErrNotFound) || ctx.Err() != nil:
			return
		case err != nil:
			w.q.config.Log.Warn("watch", "job", w.id, "error", err)
		}
		select {
		case <-bell:
		case <-time.After(lostBell):
		case <-ctx.Done():
			return
		case <-w.q.closing:
			return
		}
	}
}

// news delivers what is new and reports whether the job has ended. The record
// is read first: a worker stores the end after its last event, so if that is
// in the record, all events are there.
func (w *watch) news(ctx context.Context) (ended bool, err error) {
	r, err := w.q.get(ctx, w.id)
	if err != nil {
		return false, err
	}
	if !r.State.Ended() {
		w.state(ctx, r)
	}
	if err := w.events(ctx); err != nil {
		return false, err
	}
	if r.State.Ended() {
		w.state(ctx, r)
	}
	return r.State.Ended(), ctx.Err()
}

func (w *watch) state(ctx context.Context, r record) {
	if r.revision == w.revision {
		return
	}
	at := r.Queued
	switch {
	case !r.Ended.IsZero():
		at = r.Ended
	case r.State == Running:
		at = r.Started
	}
	w.send(ctx, WatchEvent{Time: at, Attempt: r.Attempt, Job: &r.Job})
	w.revision = r.revision
}

func (w *watch) events(ctx context.Context) error {
	for ctx.Err() == nil {
		e, err := w.next(ctx)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		w.send(ctx, e)
	}
	return ctx.Err()
}

// next returns the next event, or jetstream.ErrMsgNotFound. Those of an attempt
// that was given up do not come after those of the next.
func (w *watch) next(ctx context.Context) (WatchEvent, error) {
	for {
		m, err := w.q.events.GetMsg(ctx, w.seq+1, jetstream.WithGetMsgSubject(eventSubject+w.id))
		if err != nil {
			return WatchEvent{}, fmt.Errorf("read events of job %s: %w", w.id, err)
		}
		w.seq = m.Sequence
		attempt, err := strconv.Atoi(m.Header.Get(headerAttempt))
		if err != nil || attempt < w.attempt {
			continue
		}
		w.attempt = attempt
		return WatchEvent{Seq: m.Sequence, Time: m.Time, Attempt: attempt, Data: m.Data}, nil
	}
}

func (w *watch) send(ctx context.Context, e WatchEvent) {
	select {
	case w.out <- e:
	case <-ctx.Done():
	case <-w.q.closing:
	}
}

// followEvents rings for jobs whose workers said something.
func (q *Queue) followEvents(ctx context.Context) error {
	consumer, err := q.js.OrderedConsumer(ctx, eventStream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverNewPolicy, HeadersOnly: true,
	})
	if err != nil {
		return err
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) { q.bell.ring(m.Subject()[len(eventSubject):]) })
	if err != nil {
		return err
	}
	q.following.Go(func() {
		<-ctx.Done()
		consuming.Stop()
	})
	return nil
}

// offerBell and a card ring when there is a job for that card.
const offerBell = "card "

// bell tells listeners that there is news of a job or a worker, by their ids.
type bell struct {
	mu        sync.Mutex
	listeners map[string]map[chan struct{}]bool
}

func newBell() *bell { return &bell{listeners: make(map[string]map[chan struct{}]bool)} }

// listen returns a channel that receives after each ring of any of the ids, or once
// after many.
func (b *bell) listen(ids ...string) (_ <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if b.listeners[id] == nil {
			b.listeners[id] = make(map[chan struct{}]bool)
		}
		b.listeners[id][c] = true
	}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, id := range ids {
			delete(b.listeners[id], c)
			if len(b.listeners[id]) == 0 {
				delete(b.listeners, id)
			}
		}
	}
}

func (b *bell) ring(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.listeners[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
