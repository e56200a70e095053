package job

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
)

// hand is a worker that does as a test says. It says that it is there when it
// takes a job, and when the test says so.
type hand struct {
	q  *Queue
	id string
	a  Announcement
}

func newHand(ctx context.Context, t testing.TB, q *Queue, cards ...string) *hand {
	t.Helper()
	h, err := joinHand(ctx, q, cards...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func joinHand(ctx context.Context, q *Queue, cards ...string) (*hand, error) {
	h := &hand{q: q}
	for _, c := range cards {
		h.a.Cards = append(h.a.Cards, Card{ID: c})
	}
	m, err := q.Join(ctx, "", h.a)
	h.id = m.ID
	return h, err
}

// take leases a job if there is one now.
func (h *hand) take(ctx context.Context) (*held, error) {
	if !h.q.fleet.alive(h.id) { // a test may have been busy for longer than a lease
		if err := h.q.announce(ctx, "", h.id, h.a); err != nil {
			return nil, err
		}
	}
	j, err := h.q.Take(ctx, h.id, h.a.Cards[0].ID, 0)
	if j == nil || err != nil {
		return nil, err
	}
	return &held{hand: h, job: *j}, nil
}

// held is a lease.
type held struct {
	hand   *hand
	job    Job
	events atomic.Int64
}

// beat keeps the lease, and returns why it has ended if it has.
func (l *held) beat(ctx context.Context) error {
	a := l.hand.a
	a.Cards = []Card{{ID: a.Cards[0].ID, Job: l.job.ID, Attempt: l.job.Attempt}}
	orders, err := l.hand.q.Heartbeat(ctx, "", l.hand.id, a, 0)
	switch {
	case err != nil || len(orders.Stop) == 0:
		return err
	case orders.Stop[0].Cancelled:
		return ErrCancelled
	default:
		return ErrLost
	}
}

func (l *held) say(ctx context.Context, data string) error {
	return l.hand.q.Progress(ctx, l.hand.id, Progress{
		Job: l.job.ID, Attempt: l.job.Attempt, First: int(l.events.Add(1)) - 1, Events: []json.RawMessage{json.RawMessage(data)},
	})
}

func (l *held) end(ctx context.Context, e Ending) error {
	e.Job, e.Attempt = l.job.ID, l.job.Attempt
	for { // as a worker does while its server is away
		err := l.hand.q.End(ctx, l.hand.id, e)
		if err == nil || !transient(err) || ctx.Err() != nil {
			return err
		}
	}
}

func (l *held) succeed(ctx context.Context, result string) error {
	return l.end(ctx, Ending{To: Succeeded, Result: json.RawMessage(result)})
}

func (l *held) fail(ctx context.Context, reason string) error {
	return l.end(ctx, Ending{To: Failed, Reason: reason})
}

func (l *held) giveBack(ctx context.Context, reason string) error {
	return l.end(ctx, Ending{To: Queued, Reason: reason})
}
