package job

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUnheard says that a worker did not do as it was told.
var ErrUnheard = errors.New("the worker does not answer: it may be stopping, disconnected or an older version; stopping it on its own machine still drains it")

const (
	hearTime    = 5 * time.Second        // a worker whose network was cut finds back in less
	repeatAfter = 500 * time.Millisecond // what it was told may have been lost with the network
)

// What a worker is told.
const (
	drainWord  = "drain"
	resumeWord = "resume"
)

// Drain tells a worker to take no more jobs and to end when it has none left,
// and waits until it says that it does. A resident worker stays.
func (q *Queue) Drain(ctx context.Context, id string) (Worker, error) {
	return q.tell(ctx, id, drainWord)
}

// Resume tells a worker that drains to take jobs again. One that its own
// machine told to end does not listen to that.
func (q *Queue) Resume(ctx context.Context, id string) (Worker, error) {
	return q.tell(ctx, id, resumeWord)
}

// tell has every server say a word to a worker with its next heartbeat, until its
// announcement shows that it heard. Nothing is stored: a worker that cannot be
// reached now must be told again.
func (q *Queue) tell(ctx context.Context, id, word string) (Worker, error) {
	bell, leave := q.bell.listen(id)
	defer leave()
	w, known := q.fleet.find(id)
	if !known {
		return w, ErrNoWorker
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hearTime, ErrUnheard)
	defer cancel()
	for w.Draining != (word == drainWord) {
		if err := q.conn.Publish(drainSubject+id, []byte(word)); err != nil {
			return w, fmt.Errorf("tell worker %s to %s: %w", id, word, err)
		}
		select {
		case <-bell:
		case <-time.After(repeatAfter):
		case <-ctx.Done():
			return w, context.Cause(ctx)
		}
		now, there := q.fleet.find(id)
		if !there && word == drainWord {
			w.Draining = true // it had nothing to do, and has left
			return w, nil
		}
		if w = now; !there {
			return w, ErrNoWorker
		}
	}
	return w, nil
}
