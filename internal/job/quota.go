package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// DefaultHistoryBytes is how much records and results may take; some millions of
// analyses.
const DefaultHistoryBytes = 10 << 30

const (
	maxHistory    = 2_000_000 // jobs; the index of a million takes 280 MB
	maxEventBytes = 1 << 30   // of all jobs; the oldest go first
	trimAtOnce    = 1_000
)

// trim forgets the jobs that ended longest ago while the history is larger than
// it may be, some at a time.
func (q *Queue) trim(ctx context.Context) error {
	var stored uint64
	for _, bucket := range []string{recordBucket, resultBucket} {
		s, err := q.js.Stream(ctx, "KV_"+bucket)
		if err != nil {
			return fmt.Errorf("look at the history: %w", err)
		}
		stored += s.CachedInfo().State.Bytes
	}
	jobs := q.index.count()
	excess := max(share(uint64(jobs), q.maxHistory), share(stored, uint64(q.config.HistoryBytes)))
	gone := 0
	for _, id := range q.index.oldestEnded(min(int(excess*float64(jobs))+1, trimAtOnce)) {
		if excess == 0 {
			break
		}
		if err := q.Delete(ctx, id); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		gone++
	}
	if gone > 0 {
		q.config.Log.Info("the history was full; the oldest analyses were forgotten", "count", gone)
	}
	return nil
}

// share is how much of something has to go so that a twentieth of the limit is
// free, 0 while it is within the limit.
func share(have, limit uint64) float64 {
	if have <= limit {
		return 0
	}
	return 1 - 0.95*float64(limit)/float64(have)
}

// count is how many jobs there are.
func (x *index) count() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.rows) - x.gone
}

// oldestEnded returns jobs that have ended, in the order of their submission.
func (x *index) oldestEnded(most int) (ids []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.rows {
		if len(ids) == most {
			break
		}
		if r.state != deleted && States[r.state].Ended() {
			ids = append(ids, r.id.String())
		}
	}
	return ids
}

// EventPage is a part of what the workers of a job said.
type EventPage struct {
	Events []WatchEvent
	Next   uint64 // to continue from, 0 on the last page
}

// Events returns what the workers of a job said after the event with a number, as
// far as it is kept. It does not wait for more.
func (q *Queue) Events(ctx context.Context, id string, after uint64, limit int) (*EventPage, error) {
	if _, err := q.get(ctx, id); err != nil {
		return nil, err
	}
	limit = min(max(limit, 1), MaxLimit)
	w := &watch{q: q, id: id, seq: after}
	p := &EventPage{}
	for len(p.Events) <= limit {
		e, err := w.next(ctx)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		p.Events = append(p.Events, e)
	}
	p.Events = slices.Clip(p.Events[:limit])
	p.Next = p.Events[limit-1].Seq
	return p, nil
}
