package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// repairs mends the queue when the history is loaded and then once in every
// lease. Several servers may do it at the same time.
func (q *Queue) repairs(ctx context.Context) {
	if q.index.wait(ctx) != nil {
		return
	}
	tick := time.NewTicker(q.config.Lease)
	defer tick.Stop()
	for {
		if err := q.repair(ctx); err != nil && ctx.Err() == nil {
			q.config.Log.Warn("repair the queue", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// repair restores the package's first rule, that a job has a message exactly
// as long as it has not ended, and takes jobs from workers that fell silent.
func (q *Queue) repair(ctx context.Context) error {
	info, err := q.queue.Info(ctx, jetstream.WithSubjectFilter(queueSubject+">"))
	if err != nil {
		return fmt.Errorf("list the queue: %w", err)
	}
	messages := info.State.Subjects
	wanted := make(map[string]bool)
	for _, r := range q.index.unfinished() {
		subject := subjectOf(r.Card, r.Key)
		wanted[subject] = true
		if messages[subject] == 0 {
			err = errors.Join(err, q.requeue(ctx, r.ID))
		}
		if r.State == Running && q.fleet.silent(r) {
			err = errors.Join(err, q.takeAway(ctx, r))
		}
	}
	for subject := range messages {
		if !wanted[subject] {
			card, key, _ := strings.Cut(strings.TrimPrefix(subject, queueSubject), ".")
			_, e := q.equal(ctx, card, key)
			err = errors.Join(err, e)
		}
	}
	return err
}

// requeue publishes the message of a job that lacks one.
func (q *Queue) requeue(ctx context.Context, id string) error {
	r, err := q.get(ctx, id)
	if errors.Is(err, ErrNotFound) || err == nil && r.State.Ended() {
		return nil
	}
	if err != nil {
		return err
	}
	if err := q.openCard(ctx, r.Card); err != nil {
		return err
	}
	err = q.enqueue(ctx, r.Job)
	if errors.Is(err, errQueued) {
		// Its Submit lost against an equal one and crashed before it could
		// take the record back. Nobody was told of this job.
		return q.forget(ctx, id)
	}
	return err
}

// takeAway ends the attempt of a worker that fell silent, so that the history
// does not call a job running that nobody works on. Its message comes back by
// itself.
func (q *Queue) takeAway(ctx context.Context, seen record) error {
	r, err := q.mutate(ctx, seen.ID, func(j Job) (Job, error) {
		if j.State != Running || j.Attempt != seen.Attempt {
			return j, ErrLost
		}
		return j.silent()
	})
	if errors.Is(err, ErrLost) || errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil && r.State.Ended() {
		q.settle(ctx, r.Job)
	}
	return err
}
