package job

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Worker is what a worker says of itself, several times in each lease.
type Worker struct {
	ID       string   `json:"id"`
	Host     string   `json:"host"`
	Version  string   `json:"version,omitempty"`
	Cards    []Card   `json:"cards"`
	Draining bool     `json:"draining,omitempty"` // it takes no more jobs
	Resident bool     `json:"resident,omitempty"` // the server's own: drained, it waits to be resumed instead of ending
	Jobs     []string `json:"jobs,omitempty"`     // ids of those it works on

	Since time.Time `json:"since,omitzero"` // when this server first heard of it
	Seen  time.Time `json:"seen,omitzero"`  // when this server last heard of it
}

// Card is a card that a worker has. It works on one job at a time.
type Card struct {
	ID   string `json:"id"`             // of the catalog; whose jobs it takes
	Name string `json:"name,omitempty"` // as the driver says
	Job  string `json:"job,omitempty"`  // what it works on
}

// fleet is who is there, as far as this server has heard. Silence is measured
// by this server's own clock.
type fleet struct {
	lease   time.Duration
	mu      sync.Mutex
	workers map[string]Worker
}

func newFleet(lease time.Duration) *fleet {
	return &fleet{lease: lease, workers: make(map[string]Worker)}
}

func (f *fleet) hear(w Worker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Seen = time.Now()
	w.Since = w.Seen
	if known, ok := f.workers[w.ID]; ok {
		w.Since = known.Since
	}
	f.workers[w.ID] = w
	for id, other := range f.workers {
		if time.Since(other.Seen) > 10*f.lease {
			delete(f.workers, id)
		}
	}
}

func (f *fleet) leave(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.workers, id)
}

func (f *fleet) find(id string) (Worker, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.workers[id]
	return w, ok
}

// silent reports whether nothing was heard of a job's worker for two leases:
// one for the worker, and one for the queue to notice by itself.
func (f *fleet) silent(r record) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := r.heard
	if w, ok := f.workers[r.Worker]; ok && w.Seen.After(last) {
		last = w.Seen
	}
	return time.Since(last) > 2*f.lease
}

// holds reports whether a worker said lately that it works on a job.
func (f *fleet) holds(worker, job string) bool {
	w, ok := f.find(worker)
	return ok && time.Since(w.Seen) < f.lease && slices.Contains(w.Jobs, job)
}

// Workers returns the workers that were heard of lately, by host. One that
// has been silent for a lease is listed with its old Seen for a while.
func (q *Queue) Workers() []Worker {
	q.fleet.mu.Lock()
	defer q.fleet.mu.Unlock()
	return slices.SortedFunc(maps.Values(q.fleet.workers), func(a, b Worker) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID))
	})
}

// Lease is how long a worker may be silent before it counts as lost.
func (q *Queue) Lease() time.Duration { return q.config.Lease }

// followWorkers listens to workers, and opens the queues of their cards.
func (q *Queue) followWorkers(ctx context.Context) error {
	if err := q.openCard(ctx, Any); err != nil {
		return err
	}
	watcher, err := q.workers.WatchAll(ctx)
	if err != nil {
		return err
	}
	q.following.Go(func() {
		for entry := range watcher.Updates() {
			if entry != nil {
				q.hear(ctx, entry)
			}
		}
	})
	return nil
}

func (q *Queue) hear(ctx context.Context, entry jetstream.KeyValueEntry) {
	defer q.bell.ring(entry.Key()) // for Drain
	if entry.Operation() != jetstream.KeyValuePut {
		q.fleet.leave(entry.Key())
		return
	}
	var w Worker
	if err := json.Unmarshal(entry.Value(), &w); err != nil || w.ID != entry.Key() {
		q.config.Log.Warn("a worker said something strange", "worker", entry.Key(), "error", err)
		return
	}
	q.fleet.hear(w)
	for _, c := range w.Cards {
		if !cardID.MatchString(c.ID) {
			continue
		}
		if err := q.openCard(ctx, c.ID); err != nil {
			q.config.Log.Warn("open card", "card", c.ID, "error", err)
		}
	}
}
