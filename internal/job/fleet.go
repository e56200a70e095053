package job

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Announcement is what a worker says of itself when it joins and with every
// heartbeat.
type Announcement struct {
	Host     string `json:"host" doc:"its name for people"`
	Version  string `json:"version,omitempty" doc:"of its program"`
	Cards    []Card `json:"cards" maxItems:"64"`
	Draining bool   `json:"draining,omitempty" doc:"it takes no more jobs"`
	Resident bool   `json:"resident,omitempty" doc:"the server's own: drained, it waits to be resumed instead of leaving"`
}

// Card is a card that a worker has. It works on one job at a time.
type Card struct {
	ID      string `json:"id" doc:"of the catalog: whose jobs it takes"`
	Name    string `json:"name,omitempty" doc:"as the driver says"`
	Job     string `json:"job,omitempty" doc:"what it works on"`
	Attempt int    `json:"attempt,omitempty" doc:"of the lease by which it works on the job; absent when the worker knows that the lease has ended"`
}

// Worker is a worker of the fleet.
type Worker struct {
	ID string `json:"id"`
	Announcement
	Jobs []string `json:"jobs,omitempty"` // ids of those it works on

	Since time.Time `json:"since,omitzero"` // when this server first heard of it
	Seen  time.Time `json:"seen,omitzero"`  // when this server last heard of it

	owner string // whose token it joined with
}

// What a worker may announce, and how many workers may join with one token.
const (
	MaxCards        = 64
	maxName         = 256 // bytes of a host, a version or a card's name
	maxWorkersEach  = 256
	forgottenLeases = 10 // after that many, a silent worker is not listed any more
)

// ErrTooMany says that a token has as many workers as it may.
var ErrTooMany = fmt.Errorf("%d workers have joined with this token, which is the maximum; create another token for more", maxWorkersEach)

func (a *Announcement) validate() error {
	switch {
	case len(a.Cards) > MaxCards:
		return &InvalidError{"cards", fmt.Sprintf("are %d; %d are allowed", len(a.Cards), MaxCards)}
	case len(a.Host) > maxName || len(a.Version) > maxName:
		return &InvalidError{"host", fmt.Sprintf("or version has more than %d bytes", maxName)}
	}
	for _, c := range a.Cards {
		if !cardID.MatchString(c.ID) || c.ID == Any || len(c.Name) > maxName {
			return &InvalidError{"cards", fmt.Sprintf("has %.80q, whose id must be in lower-case letters, digits and dashes and not %q, and whose name may have %d bytes", c.ID, Any, maxName)}
		}
		if _, ok := parseID(c.Job); c.Job != "" && !ok {
			return &InvalidError{"cards", fmt.Sprintf("has the job %.80q, which is not the id of a job", c.Job)}
		}
	}
	return nil
}

// jobs are those that the worker works on.
func (a *Announcement) jobs() (ids []string) {
	for _, c := range a.Cards {
		if c.Job != "" {
			ids = append(ids, c.Job)
		}
	}
	return ids
}

// fleet is who is there, as far as this server has heard. Silence is measured
// by this server's own clock.
type fleet struct {
	lease   time.Duration
	mu      sync.Mutex
	workers map[string]Worker
	named   map[lease]time.Time  // when a heartbeat last named it
	told    map[string]order     // by worker: whether to drain
	left    map[string]time.Time // within the last lease
}

// lease names its worker: what another worker claims does not keep it.
type lease struct {
	worker  string
	job     string
	attempt int
}

// order is whether a worker should drain. It is forgotten if the worker does not
// hear of it in time.
type order struct {
	drain bool
	until time.Time
}

func newFleet(d time.Duration) *fleet {
	return &fleet{lease: d, workers: make(map[string]Worker), named: make(map[lease]time.Time), told: make(map[string]order), left: make(map[string]time.Time)}
}

// hear notes what a worker says of itself. A worker that is new counts among
// those of its owner, which are limited. A heartbeat may be overtaken by its
// worker's leave: what is heard after that does not bring it back.
func (f *fleet) hear(w Worker) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if _, gone := f.left[w.ID]; gone {
		return ErrNoWorker
	}
	known, ok := f.workers[w.ID]
	if !ok && f.count(w.owner, now) >= maxWorkersEach {
		return ErrTooMany
	}
	w.Seen, w.Since = now, now
	if ok {
		w.Since = known.Since
	}
	w.Jobs = w.jobs()
	f.workers[w.ID] = w
	for _, c := range w.Cards {
		if c.Attempt != 0 {
			f.named[lease{w.ID, c.Job, c.Attempt}] = now
		}
	}
	if o, ok := f.told[w.ID]; ok && (o.drain == w.Draining || now.After(o.until)) {
		delete(f.told, w.ID)
	}
	f.forget(now)
	return nil
}

// count is how many workers of an owner there are.
func (f *fleet) count(owner string, now time.Time) (n int) {
	for _, w := range f.workers {
		if w.owner == owner && now.Sub(w.Seen) < f.lease {
			n++
		}
	}
	return n
}

// forget drops what was not heard of for long.
func (f *fleet) forget(now time.Time) {
	old := func(t time.Time) bool { return now.Sub(t) > forgottenLeases*f.lease }
	maps.DeleteFunc(f.workers, func(_ string, w Worker) bool { return old(w.Seen) })
	maps.DeleteFunc(f.named, func(_ lease, t time.Time) bool { return old(t) })
	maps.DeleteFunc(f.told, func(_ string, o order) bool { return now.After(o.until) })
	maps.DeleteFunc(f.left, func(_ string, t time.Time) bool { return now.Sub(t) > f.lease })
}

func (f *fleet) leave(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.workers, id)
	delete(f.told, id)
	f.left[id] = time.Now()
}

func (f *fleet) find(id string) (Worker, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.workers[id]
	return w, ok
}

// ErrNoWorker says that no worker with that id was heard of lately.
var ErrNoWorker = errors.New("no such worker; it may have left")

// has reports whether a worker has a card, and may take jobs for it.
func (f *fleet) has(id, card string) error {
	w, ok := f.find(id)
	switch {
	case !ok:
		return ErrNoWorker
	case !slices.ContainsFunc(w.Cards, func(c Card) bool { return c.ID == card }):
		return &InvalidError{"card", fmt.Sprintf("%.80q is none of those that the worker announced", card)}
	case w.Draining:
		return &InvalidError{"worker", "drains, and takes no more jobs"}
	}
	return nil
}

// alive reports whether a worker was heard of within a lease.
func (f *fleet) alive(id string) bool {
	w, ok := f.find(id)
	return ok && time.Since(w.Seen) < f.lease
}

// silent reports whether no heartbeat of its worker named a running attempt for a lease.
func (f *fleet) silent(r record) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := r.heard
	if named := f.named[lease{r.Worker, r.ID, r.Attempt}]; named.After(last) {
		last = named
	}
	return time.Since(last) > f.lease
}

// tell notes whether a worker should drain.
func (f *fleet) tell(id string, drain bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[id] = order{drain, time.Now().Add(hearTime)}
}

// drain is what a worker was told and has not done yet, nil if there is nothing.
func (f *fleet) drain(id string) *bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.told[id]
	if w := f.workers[id]; !ok || time.Now().After(o.until) || w.Draining == o.drain {
		return nil
	}
	return &o.drain
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
