package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// errQueued says that the queue holds an equal job already.
var errQueued = errors.New("an equal job is in the queue")

// Submit stores a job and queues it; when it returns, the job survives any
// crash. If an equal job has not ended, that one is returned, and joined is
// true.
func (q *Queue) Submit(ctx context.Context, r Request) (j *Job, joined bool, err error) {
	if err := r.validate(); err != nil {
		return nil, false, err
	}
	var payload bytes.Buffer
	if err := json.Compact(&payload, r.Payload); err != nil {
		return nil, false, &InvalidError{"payload", err.Error()}
	}
	r.Payload = payload.Bytes()
	if err := q.storage.check(); err != nil {
		return nil, false, err
	}
	err = q.whileStorable(ctx, func(ctx context.Context) error {
		j, joined, err = q.submit(ctx, r)
		return err
	})
	return j, joined, err
}

func (q *Queue) submit(ctx context.Context, r Request) (j *Job, joined bool, err error) {
	key := keyOf(&r)
	for {
		if j, err = q.equal(ctx, r.Card, key); j != nil || err != nil {
			return j, j != nil, err
		}
		j, err = q.create(ctx, Job{Card: r.Card, Key: key, Labels: r.Labels, Payload: r.Payload, State: Queued})
		if !errors.Is(err, errQueued) {
			return j, false, err
		}
	}
}

// equal returns the job in the queue that has this key, nil if there is none.
func (q *Queue) equal(ctx context.Context, card, key string) (*Job, error) {
	m, err := lastMessage(ctx, q.conn, queueStream, subjectOf(card, key))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := q.get(ctx, string(m.Data))
	switch {
	case err == nil && !r.State.Ended():
		return &r.Job, nil
	case err != nil && !errors.Is(err, ErrNotFound):
		return nil, err
	}
	// It has ended, and its message is about to go.
	err = q.queue.DeleteMsg(ctx, m.Sequence)
	if errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		err = nil
	}
	return nil, err
}

// create stores a job's record and then its message. If another server was
// faster with an equal one, it takes the record back.
func (q *Queue) create(ctx context.Context, j Job) (*Job, error) {
	j.ID = newID(q.now()).String()
	data, err := encode(j)
	if err != nil {
		return nil, err
	}
	err = answer(ctx, func(ctx context.Context) error {
		_, err := q.records.Create(ctx, j.ID, data)
		return err
	})
	// If it exists, an earlier try made it: no other job has this id.
	if err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return nil, fmt.Errorf("store job: %w", err)
	}
	if err := q.enqueue(ctx, j); err != nil {
		// If this fails too, repair does it.
		return nil, errors.Join(err, q.forget(context.WithoutCancel(ctx), j.ID))
	}
	r, err := q.get(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	q.index.put(r)
	return &r.Job, nil
}

// enqueue publishes a job's message. It returns nil if it is there already, and
// errQueued if that of an equal job is.
func (q *Queue) enqueue(ctx context.Context, j Job) error {
	subject := subjectOf(j.Card, j.Key)
	return answer(ctx, func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, subject, []byte(j.ID))
		var api *jetstream.APIError
		switch {
		case err == nil || !errors.As(err, &api) || api.ErrorCode != errCodeStoreFailed:
			return err
		case !strings.Contains(api.Description, refusedBySubject):
			return ErrFull
		}
		m, err := lastMessage(ctx, q.conn, queueStream, subject)
		switch {
		case errors.Is(err, ErrNotFound):
			return errBehind // it was refused for one that is not stored yet
		case err != nil:
			return err
		case string(m.Data) != j.ID:
			return errQueued
		default:
			return nil
		}
	})
}

// How the engine says that a stream's limits refuse a message, and that it was
// the limit for its subject.
const (
	errCodeStoreFailed jetstream.ErrorCode = 10077
	refusedBySubject                       = "messages per subject"
)
