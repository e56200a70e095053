package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Reasons for which a worker must stop working on a job.
var (
	// ErrCancelled says that the job was cancelled.
	ErrCancelled = errors.New("the job was cancelled")
	// ErrLost says that the job was given to somebody else or deleted.
	ErrLost = errors.New("the job was taken away because this worker was silent for too long")
)

// Lease is one attempt at a job by one worker. Every change needs the record
// as this attempt left it, so a lease that was lost can change nothing.
type Lease struct {
	link    *Link
	message jetstream.Msg
	record  record         // as it was when the job was taken
	pending sync.WaitGroup // events that the engine has not acknowledged
}

func newLease(l *Link, m jetstream.Msg, r record) *Lease {
	l.hold(r.Job)
	return &Lease{link: l, message: m, record: r}
}

// Job returns the job as it was taken.
func (l *Lease) Job() Job { return l.record.Job }

// Beat tells the queue that the job is being worked on, and asks whether it
// still should be: ErrCancelled and ErrLost mean that it should not. Any other
// error means that the queue could not be reached.
func (l *Lease) Beat(ctx context.Context) error {
	if err := l.message.InProgress(); err != nil {
		return err
	}
	_, err := l.held(ctx)
	switch {
	case errors.Is(err, errBehind):
		return nil // the next one may be further
	case errors.Is(err, ErrLost) || errors.Is(err, ErrCancelled):
		l.link.release(l.record.Job)
	}
	return err
}

// held returns the record, if it is still as this attempt left it.
func (l *Lease) held(ctx context.Context) (record, error) {
	r, err := l.link.get(ctx, l.record.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		return r, ErrLost
	case err != nil:
		return r, err
	case r.revision < l.record.revision:
		return r, errBehind
	case r.State == Cancelled:
		return r, ErrCancelled
	case r.revision != l.record.revision:
		return r, ErrLost
	}
	return r, nil
}

// errBehind says that a replica was asked that has not heard of this attempt.
var errBehind = errors.New("the engine's replica is behind")

// Cancelled returns a channel that receives when a server has ended the job, so
// that a worker need not wait for its next beat.
func (l *Lease) Cancelled() (_ <-chan struct{}, stop func(), err error) {
	c := make(chan struct{}, 1)
	s, err := l.link.conn.Subscribe(cancelSubject+l.link.id, func(m *nats.Msg) {
		if string(m.Data) != l.record.ID {
			return
		}
		select {
		case c <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return c, func() { s.Unsubscribe() }, nil //nolint:errcheck // it only fails if the connection is closed
}

// Progress says something about the work. It does not wait for the engine;
// Succeed and Fail do.
func (l *Lease) Progress(data json.RawMessage) error {
	if len(data) > MaxEvent || !json.Valid(data) {
		return &InvalidError{"progress", fmt.Sprintf("of %d bytes is not JSON or has more than %d", len(data), MaxEvent)}
	}
	m := nats.NewMsg(eventSubject + l.record.ID)
	m.Header.Set(headerAttempt, strconv.Itoa(l.record.Attempt))
	m.Data = data
	future, err := l.link.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(3))
	if err != nil {
		return fmt.Errorf("publish progress: %w", err)
	}
	l.pending.Go(func() {
		select {
		case <-future.Ok():
		case <-future.Err():
		case <-time.After(eventTimeout):
		}
	})
	return nil
}

// eventTimeout is how long an event may take; progress is not worth more.
const eventTimeout = 5 * time.Second

// Succeed stores the result and then ends the job. It tries until the context
// ends; the result is worth waiting for a server that restarts. ErrLost and
// ErrCancelled say that the result does not count.
func (l *Lease) Succeed(ctx context.Context, result json.RawMessage) error {
	if len(result) > MaxPayload || !json.Valid(result) {
		return l.Fail(ctx, fmt.Sprintf("the result of %d bytes is not JSON or has more than %d", len(result), MaxPayload))
	}
	return l.end(ctx, report{Act: succeeds, Result: result})
}

// Fail ends the job with the reason.
func (l *Lease) Fail(ctx context.Context, reason string) error {
	return l.end(ctx, report{Act: fails, Reason: reason})
}

// GiveBack returns the job to the queue, for another worker to take at once.
// It does not count as a death.
func (l *Lease) GiveBack(ctx context.Context, reason string) error {
	if err := l.settle(ctx, report{Act: givesBack, Reason: reason}); err != nil {
		return err
	}
	return l.message.Nak()
}

// Drop takes the message of a job that was cancelled out of the queue. A lease
// that was lost has no say in its message any more.
func (l *Lease) Drop() error { return l.message.Ack() }

func (l *Lease) end(ctx context.Context, p report) error {
	l.pending.Wait()
	if err := l.settle(ctx, p); err != nil {
		return err
	}
	// If this gets lost, the message comes back and is found to be of a job
	// that has ended.
	return l.message.Ack()
}

// settle reports the end of the attempt, until it is known that it counts or
// cannot.
func (l *Lease) settle(ctx context.Context, p report) error {
	next, err := l.record.after(p, l.link.id)
	if err != nil {
		return err
	}
	defer l.link.release(l.record.Job)
	return insist(ctx, func(ctx context.Context) error {
		r, err := l.held(ctx)
		if errors.Is(err, ErrLost) && r.Attempt == next.Attempt && r.State == next.State {
			return nil // an earlier try did it, and its answer was lost
		}
		if err != nil {
			return err
		}
		p.Job, p.Revision = r.ID, r.revision
		_, err = l.link.report(ctx, p)
		return err
	})
}
