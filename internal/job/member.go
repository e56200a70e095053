package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Membership is what a worker gets when it joins.
type Membership struct {
	ID           string  `json:"id" doc:"by which it speaks from now on, with the same token"`
	LeaseSeconds float64 `json:"lease_seconds" doc:"how long it may be silent before its jobs are given to others"`
}

// Join takes a worker into the fleet. The owner is whoever's token it shows; its
// id is of no use to others.
func (q *Queue) Join(ctx context.Context, owner string, a Announcement) (Membership, error) {
	m := Membership{newWorkerID(q.now(), owner).String(), q.config.Lease.Seconds()}
	return m, q.announce(ctx, owner, m.ID, a)
}

// Owns reports whether a worker's id was given to an owner.
func Owns(owner, worker string) bool { return ownWorkerID(worker, owner) }

// announced is a worker in the bucket by which servers tell each other.
type announced struct {
	Announcement
	Owner string `json:"owner,omitempty"`
	Via   string `json:"via"` // the server that it spoke to
}

// announce notes what a worker says of itself, here and for other servers.
func (q *Queue) announce(ctx context.Context, owner, worker string, a Announcement) error {
	if err := a.validate(); err != nil {
		return err
	}
	if err := q.fleet.hear(Worker{ID: worker, Announcement: a, owner: owner}); err != nil {
		return err
	}
	q.bell.ring(worker) // for Drain
	data, err := json.Marshal(announced{a, owner, q.name})
	if err != nil {
		return err
	}
	// An engine without a leader answers after seconds: the worker's next heartbeat must not wait for it.
	telling, cancel := context.WithTimeout(ctx, q.config.Lease/6)
	defer cancel()
	if _, err := q.workers.Put(telling, worker, data); err != nil && ctx.Err() == nil {
		q.config.Log.Warn("tell other servers of a worker", "worker", worker, "error", err) // the next heartbeat does
	}
	return nil
}

// Orders are what a worker should do; empty ones mean that it should continue.
type Orders struct {
	Stop  []Stop `json:"stop,omitempty" doc:"leases that have ended: stop working on them"`
	Drain *bool  `json:"drain,omitempty" doc:"true: take no more jobs, and leave when none is left; false: take jobs again"`
}

// Stop says that a lease has ended.
type Stop struct {
	Job       string `json:"job"`
	Attempt   int    `json:"attempt"`
	Cancelled bool   `json:"cancelled,omitempty" doc:"the job was cancelled; otherwise the worker was silent for too long, or the job was deleted"`
}

// Heartbeat keeps the leases that a worker names, and waits for orders: it returns
// as soon as there are any, or without after that time.
func (q *Queue) Heartbeat(ctx context.Context, owner, worker string, a Announcement, wait time.Duration) (Orders, error) {
	if err := q.announce(ctx, owner, worker, a); err != nil {
		return Orders{}, err
	}
	bell, leave := q.bell.listen(append(a.jobs(), worker)...)
	defer leave()
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		if o := q.orders(ctx, worker, a); len(o.Stop) > 0 || o.Drain != nil {
			return o, nil
		}
		select {
		case <-bell:
		case <-end.C:
			return Orders{}, nil
		case <-ctx.Done():
			return Orders{}, ctx.Err()
		case <-q.closing:
			return Orders{}, ErrClosed
		}
	}
}

// orders are what a worker that said this should do.
func (q *Queue) orders(ctx context.Context, worker string, a Announcement) Orders {
	o := Orders{Drain: q.fleet.drain(worker)}
	for _, c := range a.Cards {
		if c.Attempt == 0 || q.index.runs(c.Job, worker, c.Attempt) {
			continue
		}
		// Other servers' changes may not have been heard of here: the record decides.
		switch r, err := q.held(ctx, worker, c.Job, c.Attempt); {
		case errors.Is(err, ErrCancelled):
			o.Stop = append(o.Stop, Stop{c.Job, c.Attempt, true})
		case errors.Is(err, ErrLost):
			o.Stop = append(o.Stop, Stop{c.Job, c.Attempt, false})
		case err == nil:
			q.index.put(r)
		}
	}
	return o
}

// Leave takes a worker out of the fleet. Jobs that it still has go back to the queue.
func (q *Queue) Leave(ctx context.Context, worker string) error {
	q.fleet.leave(worker)
	q.bell.ring(worker)
	for _, r := range q.index.unfinished(Running) {
		if r.Worker != worker {
			continue
		}
		err := q.End(ctx, worker, Ending{Job: r.ID, Attempt: r.Attempt, To: Queued, Reason: "its worker left"})
		if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrCancelled) {
			return err
		}
	}
	err := answer(ctx, func(ctx context.Context) error { return q.workers.Delete(ctx, worker) })
	if err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// followWorkers listens to workers that speak to other servers.
func (q *Queue) followWorkers(ctx context.Context) error {
	watcher, err := q.workers.WatchAll(ctx)
	if err != nil {
		return err
	}
	q.following.Go(func() {
		for entry := range watcher.Updates() {
			if entry != nil {
				q.hear(entry)
			}
		}
	})
	return nil
}

func (q *Queue) hear(entry jetstream.KeyValueEntry) {
	defer q.bell.ring(entry.Key()) // for Drain
	if entry.Operation() != jetstream.KeyValuePut {
		q.fleet.leave(entry.Key())
		return
	}
	var w announced
	if err := json.Unmarshal(entry.Value(), &w); err != nil {
		q.config.Log.Warn("a worker's announcement cannot be read", "worker", entry.Key(), "error", err)
		return
	}
	if w.Via != q.name {
		_ = q.fleet.hear(Worker{ID: entry.Key(), Announcement: w.Announcement, owner: w.Owner}) // it was counted where it joined
	}
}

// followDrains listens to what servers tell each other for workers.
func (q *Queue) followDrains(ctx context.Context) error {
	s, err := q.conn.Subscribe(drainSubject+"*", func(m *nats.Msg) {
		worker := m.Subject[len(drainSubject):]
		q.fleet.tell(worker, string(m.Data) == drainWord)
		q.bell.ring(worker)
	})
	if err != nil {
		return err
	}
	q.following.Go(func() {
		<-ctx.Done()
		s.Unsubscribe() //nolint:errcheck // it only fails if the connection is closed
	})
	return nil
}
