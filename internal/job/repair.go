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
// as long as it has not ended, and takes jobs from workers that fell silent.
func (q *Queue) repair(ctx context.Context) error {
	q.repairing.Lock()
	defer q.repairing.Unlock()
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
	cards := make(map[string]uint64)
	for subject := range messages {
		card, key, _ := strings.Cut(strings.TrimPrefix(subject, queueSubject), ".")
		cards[card]++
		if !wanted[subject] {
			_, e := q.equal(ctx, card, key)
			err = errors.Join(err, e)
		}
	}
	if err == nil {
		q.lostRecords = false // whose they were has been found out
	}
	return errors.Join(err, q.repairConsumers(ctx, cards))
}

// repairConsumers makes consumers again that have lost messages: one whose stored
// state was damaged may believe that they were delivered. Messages come and go
// while it looks, so it looks twice.
func (q *Queue) repairConsumers(ctx context.Context, messages map[string]uint64) error {
	short := make(map[string]bool)
	var failed error
	for card, n := range messages {
		c, err := q.js.Consumer(ctx, queueStream, consumerName(card))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			q.cards.Delete(card)
			failed = errors.Join(failed, q.openCard(ctx, card))
			continue
		}
		if err != nil {
			return errors.Join(failed, fmt.Errorf("look at the queue of %s: %w", card, err))
		}
		info := c.CachedInfo()
		if info.NumPending+uint64(info.NumAckPending) >= n {
			continue
		}
		if short[card] = true; !q.short[card] {
			continue
		}
		q.config.Log.Error("the queue of a card has lost its place; its jobs are offered again", "card", card)
		delete(short, card)
		q.cards.Delete(card)
		failed = errors.Join(failed, q.js.DeleteConsumer(ctx, queueStream, consumerName(card)), q.openCard(ctx, card))
	}
	q.short = short
	return failed
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
	if q.lostRecords {
		// It is the job's last record that was lost: this one is from before its
		// message was taken out, that is, before the job ended.
		_, err = q.mutate(ctx, id, func(j Job) (Job, error) { return j.to(Failed, reasonDamaged) })
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
