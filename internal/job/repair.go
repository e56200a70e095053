package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// repairs keeps the queue consistent, when the history is loaded and then once in every
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
		if err := q.trim(ctx); err != nil && ctx.Err() == nil {
			q.config.Log.Warn("forget the oldest analyses", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// repair restores the package's first rule, that a job has a message exactly
// as long as it has not ended.
func (q *Queue) repair(ctx context.Context) error {
	q.repairing.Lock()
	defer q.repairing.Unlock()
	info, err := q.queue.Info(ctx, jetstream.WithSubjectFilter(queueSubject+">"))
	if err != nil {
		return fmt.Errorf("list the queue: %w", err)
	}
	messages := info.State.Subjects
	wanted := make(map[string]bool)
	for _, r := range q.index.unfinished(Queued, Running) {
		subject := subjectOf(r.Card, r.Key)
		wanted[subject] = true
		if messages[subject] == 0 {
			err = errors.Join(err, q.requeue(ctx, r.ID))
		}
	}
	for subject := range messages {
		card, key, _ := strings.Cut(strings.TrimPrefix(subject, queueSubject), ".")
		if !wanted[subject] {
			_, e := q.equal(ctx, card, key)
			err = errors.Join(err, e)
		}
	}
	if err == nil {
		q.lostRecords = false // whose they were has been found out
	}
	return err
}

// reasonDamaged is why a job has failed whose record cannot be read.
const reasonDamaged = "its record was damaged on the disk; ask again"

// requeue publishes the message of a job that lacks one.
func (q *Queue) requeue(ctx context.Context, id string) error {
	r, err := q.get(ctx, id)
	if errors.Is(err, ErrNotFound) || err == nil && r.State.Ended() {
		return nil
	}
	if err != nil {
		return err
	}
	if q.lostRecords {
		// It is the job's last record that was lost: this one is from before its
		// message was taken out, that is, before the job ended.
		_, err = q.mutate(ctx, id, func(j Job) (Job, error) { return j.to(Failed, reasonDamaged) })
		return err
	}
	err = q.enqueue(ctx, r.Job)
	if errors.Is(err, errQueued) {
		// Its Submit lost against an equal one and crashed before it could
		// take the record back. No one was told of this job.
		return q.forget(ctx, id)
	}
	return err
}
