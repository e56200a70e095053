package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A lease is one attempt at a job by one worker. It lasts as long as the record
// says that this attempt runs, and the worker's heartbeats name it.

// Why a lease has ended before its worker reported.
var (
	// ErrCancelled says that the job was cancelled.
	ErrCancelled = errors.New("the lease has ended: the job was cancelled")
	// ErrLost says that the job was given to another worker, queued again or deleted.
	ErrLost = errors.New("the lease has ended: the worker was silent for too long, or never had this job")
)

// Take waits for a job that a card of a worker can do, and leases it. It returns
// nil if there is none in that time.
func (q *Queue) Take(ctx context.Context, worker, card string, wait time.Duration) (*Job, error) {
	if err := q.fleet.has(worker, card); err != nil {
		return nil, err
	}
	cards := []string{card, Any}
	bell, leave := q.bell.listen(offerBell+card, offerBell+Any)
	defer leave()
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		if j, err := q.claim(ctx, worker, cards); j != nil || err != nil {
			return j, err
		}
		select {
		case <-bell:
		case <-time.After(lostBell):
		case <-end.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-q.closing:
			return nil, ErrClosed
		}
	}
}

// claim leases the next job of the cards, nil if there is none.
func (q *Queue) claim(ctx context.Context, worker string, cards []string) (*Job, error) {
	for ctx.Err() == nil {
		t, ok := q.index.next(cards)
		if !ok {
			return nil, nil
		}
		j, err := q.lease(ctx, worker, t.id.String())
		if err != nil {
			q.index.putBack(t.id)
			return nil, fmt.Errorf("lease a job: %w", err)
		}
		if j == nil {
			continue // another server was faster
		}
		if ctx.Err() == nil {
			return j, nil
		}
		// No one waits for it any more.
		err = q.End(context.WithoutCancel(ctx), worker, Ending{Job: j.ID, Attempt: j.Attempt, To: Queued, Reason: "its worker left before it had the job"})
		return nil, errors.Join(ctx.Err(), err)
	}
	return nil, ctx.Err()
}

// lease makes a queued job a worker's next attempt. Of several servers that try it
// at the same time one succeeds, and the others return nil.
func (q *Queue) lease(ctx context.Context, worker, id string) (*Job, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTime)
	defer cancel()
	r, err := q.get(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	q.index.put(r)
	if r.State != Queued {
		return nil, nil
	}
	next, err := r.taken(worker)
	if err != nil {
		return nil, err
	}
	taken, err := change(ctx, q.records, r, next)
	if errors.Is(err, errChanged) {
		if r, err = q.get(ctx, id); err == nil {
			q.index.put(r)
		}
		return nil, nil //nolint:nilerr // if it is still queued, this server hears of it
	}
	if err != nil {
		return nil, err
	}
	q.index.put(taken)
	return &taken.Job, nil
}

// held returns a job's record, if a worker has the lease of it.
func (q *Queue) held(ctx context.Context, worker, id string, attempt int) (record, error) {
	r, err := q.get(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return r, ErrLost
	case err != nil:
		return r, err
	case r.Worker != worker || r.Attempt != attempt:
		return r, ErrLost
	case r.State == Cancelled:
		return r, ErrCancelled
	case r.State != Running:
		return r, ErrLost
	}
	return r, nil
}

// Progress is what a worker says about its attempt at a job.
type Progress struct {
	Job     string            `json:"-"`
	Attempt int               `json:"attempt" minimum:"1" doc:"of the lease"`
	First   int               `json:"first" minimum:"0" doc:"the number of the first of these events, counted from 0 in each attempt; what is sent again is stored once"`
	Events  []json.RawMessage `json:"events" doc:"JSON values"`
}

// The most events of one Progress, and the most bytes that an event may have.
const (
	MaxEvents = 100
	MaxEvent  = 256 << 10
)

// Progress stores what a worker says about a job that it has.
func (q *Queue) Progress(ctx context.Context, worker string, p Progress) error {
	if len(p.Events) > MaxEvents {
		return &InvalidError{"events", fmt.Sprintf("are %d; %d are allowed at a time", len(p.Events), MaxEvents)}
	}
	for i, data := range p.Events {
		if len(data) > MaxEvent || !json.Valid(data) {
			return &InvalidError{"events", fmt.Sprintf("has a number %d of %d bytes that is not JSON or has more than %d", i, len(data), MaxEvent)}
		}
	}
	return q.answerStored(ctx, func(ctx context.Context) error {
		if _, err := q.held(ctx, worker, p.Job, p.Attempt); err != nil {
			return err
		}
		return q.publish(ctx, p)
	})
}

// publish stores events and waits until the engine has all of them.
func (q *Queue) publish(ctx context.Context, p Progress) error {
	var stored []jetstream.PubAckFuture
	for i, data := range p.Events {
		m := nats.NewMsg(eventSubject + p.Job)
		m.Header.Set(headerAttempt, strconv.Itoa(p.Attempt))
		m.Data = data
		future, err := q.js.PublishMsgAsync(m, jetstream.WithMsgID(fmt.Sprintf("%s.%d.%d", p.Job, p.Attempt, p.First+i)))
		if err != nil {
			return fmt.Errorf("store events of job %s: %w", p.Job, err)
		}
		stored = append(stored, future)
	}
	for _, future := range stored {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return fmt.Errorf("store events of job %s: %w", p.Job, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Ending is how an attempt ends: with a result, with the reason why there is none,
// or with the job going back to the queue.
type Ending struct {
	Job     string
	Attempt int
	To      State // Succeeded, Failed or Queued
	Result  json.RawMessage
	Reason  string
}

// MaxReason is how much is kept of the reason why a job failed.
const MaxReason = 64 << 10

// ShortReason cuts a reason to what is kept of it: its beginning and its end.
func ShortReason(text string) string {
	if len(text) <= MaxReason {
		return text
	}
	const cut = "\n[…]\n"
	half := (MaxReason - len(cut)) / 2
	return strings.ToValidUTF8(text[:half], "") + cut + strings.ToValidUTF8(text[len(text)-half:], "")
}

// End ends a lease. It can be said again when the answer was lost. Without the
// lease nothing changes, and the error is ErrLost or ErrCancelled.
func (q *Queue) End(ctx context.Context, worker string, e Ending) error {
	if e.To == Succeeded && (len(e.Result) > MaxPayload || !json.Valid(e.Result)) {
		return &InvalidError{"result", fmt.Sprintf("of %d bytes is not JSON or has more than %d", len(e.Result), MaxPayload)}
	}
	e.Reason = ShortReason(e.Reason)
	var ended Job
	err := q.answerStored(ctx, func(ctx context.Context) error {
		r, err := q.held(ctx, worker, e.Job, e.Attempt)
		if errors.Is(err, ErrLost) && r.Worker == worker && r.Attempt == e.Attempt && r.State == e.To {
			return nil // it was said before, and the answer was lost
		}
		if err != nil {
			return err
		}
		ended, err = q.end(ctx, r, e)
		return err
	})
	if err == nil && ended.State.Ended() {
		q.settle(ctx, ended)
	}
	return err
}

// end stores the result and then the end of an attempt.
func (q *Queue) end(ctx context.Context, r record, e Ending) (Job, error) {
	next, err := q.ending(ctx, r, e)
	if err != nil {
		return next, err
	}
	changed, err := change(ctx, q.records, r, next)
	if err != nil {
		return next, err
	}
	q.index.put(changed)
	return next, nil
}

// ending is the job after the end of an attempt, whose result is stored.
func (q *Queue) ending(ctx context.Context, r record, e Ending) (Job, error) {
	switch e.To {
	case Succeeded:
		// If another changes the record first, the result stays until the job is
		// deleted: the record says which attempt counts.
		_, err := q.results.Put(ctx, resultKey(r.ID, r.Attempt), e.Result)
		if errors.Is(err, nats.ErrMaxPayload) {
			return r.to(Failed, fmt.Sprintf("the result of %d bytes is larger than the max_payload of the NATS cluster", len(e.Result)))
		}
		if err != nil {
			return r.Job, fmt.Errorf("store result of job %s: %w", r.ID, err)
		}
		return r.to(Succeeded, "")
	case Failed:
		return r.to(Failed, e.Reason)
	case Queued:
		return r.again(e.Reason)
	default:
		return r.Job, &InvalidError{"end", fmt.Sprintf("cannot be %q", e.To)}
	}
}

// expires ends the leases of workers that fell silent.
func (q *Queue) expires(ctx context.Context) {
	tick := time.NewTicker(min(max(q.config.Lease/10, 20*time.Millisecond), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, r := range q.index.unfinished(Running) {
			if !q.fleet.silent(r) {
				continue
			}
			if err := q.takeAway(ctx, r); err != nil && ctx.Err() == nil {
				q.config.Log.Warn("take a job from a silent worker", "job", r.ID, "error", err)
			}
		}
	}
}

// takeAway ends the attempt of a worker whose heartbeats do not name it any more.
// Of several servers that try it at the same time one succeeds.
func (q *Queue) takeAway(ctx context.Context, seen record) error {
	r, err := q.mutate(ctx, seen.ID, func(j Job) (Job, error) {
		switch {
		case j.State != Running || j.Attempt != seen.Attempt:
			return j, ErrLost
		case q.fleet.alive(j.Worker):
			return j.again("its worker never confirmed that it has the job")
		default:
			return j.silent()
		}
	})
	if errors.Is(err, ErrLost) || errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil && r.State.Ended() {
		q.settle(ctx, r.Job)
	}
	return err
}
