package job

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// index is the history in memory: what lists filter by, and nothing else. It
// follows the records, so that every server has it and none owns it. A scan of
// a million rows takes milliseconds, so there are no other structures to keep
// in step.
type index struct {
	mu   sync.RWMutex
	rows []row // by id, so by time of submission
	gone int   // rows that were deleted
	open map[id]record
	// waiting are the queued jobs of each card that no worker of this server is
	// about to take, in the order of their submission.
	waiting map[string][]ticket
	bell    *bell
	labels  labelSets
	cards   interned
	loaded  chan struct{} // closed when everything stored before Open is there
	load    sync.Once
}

// row is what is known of a job, in 40 bytes.
type row struct {
	id       id
	revision uint64
	queued   int64 // in microseconds, on the engine's clock
	labels   uint32
	card     uint16
	state    uint8 // index in States, or deleted
}

const deleted = 255

// ticket is a job's place in the queue.
type ticket struct {
	queued int64 // in microseconds, on the engine's clock
	id     id
}

func (t ticket) compare(other ticket) int {
	return cmp.Or(cmp.Compare(t.queued, other.queued), bytes.Compare(t.id[:], other.id[:]))
}

func newIndex(b *bell) *index {
	return &index{open: make(map[id]record), waiting: make(map[string][]ticket), bell: b, loaded: make(chan struct{})}
}

func (x *index) isLoaded() bool {
	select {
	case <-x.loaded:
		return true
	default:
		return false
	}
}

// wait waits until the index is loaded.
func (x *index) wait(ctx context.Context) error {
	select {
	case <-x.loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put takes in a record. Old news does nothing, so that the order in which a
// change is heard of does not matter.
func (x *index) put(r record) {
	key, ok := parseID(r.ID)
	if !ok {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	at, found := x.find(key)
	if found && x.rows[at].revision >= r.revision {
		return
	}
	fresh := row{
		id: key, revision: r.revision, queued: r.Queued.UnixMicro(), state: uint8(slices.Index(States, r.State)),
		card: uint16(x.cards.number(r.Card)), labels: x.labels.number(r.Labels),
	}
	switch {
	case !found:
		x.rows = slices.Insert(x.rows, at, fresh)
	default:
		if x.rows[at].state == deleted {
			x.gone--
		}
		x.rows[at] = fresh
	}
	x.dequeue(key)
	if r.State.Ended() {
		delete(x.open, key)
		return
	}
	r.Payload, r.heard = nil, time.Now()
	x.open[key] = r
	x.enqueue(key)
}

// enqueue offers a job to workers, if it is queued.
func (x *index) enqueue(key id) {
	r, ok := x.open[key]
	if !ok || r.State != Queued {
		return
	}
	t := ticket{r.Queued.UnixMicro(), key}
	tickets := x.waiting[r.Card]
	if at, found := slices.BinarySearchFunc(tickets, t, ticket.compare); !found {
		x.waiting[r.Card] = slices.Insert(tickets, at, t)
	}
	x.bell.ring(offerBell + r.Card)
}

// dequeue takes back the offer of a job.
func (x *index) dequeue(key id) {
	r, ok := x.open[key]
	if !ok {
		return
	}
	tickets := x.waiting[r.Card]
	if at, found := slices.BinarySearchFunc(tickets, ticket{r.Queued.UnixMicro(), key}, ticket.compare); found {
		x.waiting[r.Card] = slices.Delete(tickets, at, at+1)
	}
	if len(x.waiting[r.Card]) == 0 {
		delete(x.waiting, r.Card)
	}
}

// next takes the first job of the first of these cards that has any out of the
// queue, as far as this server is concerned.
func (x *index) next(cards []string) (t ticket, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, card := range cards {
		if tickets := x.waiting[card]; len(tickets) > 0 {
			t = tickets[0]
			x.dequeue(t.id)
			return t, true
		}
	}
	return t, false
}

// putBack offers a job again that was not taken after all.
func (x *index) putBack(key id) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.enqueue(key)
}

// runs reports whether a worker has the lease of a job, as far as this server has
// heard.
func (x *index) runs(job, worker string, attempt int) bool {
	key, ok := parseID(job)
	x.mu.RLock()
	defer x.mu.RUnlock()
	r, open := x.open[key]
	return ok && open && r.State == Running && r.Worker == worker && r.Attempt == attempt
}

// remove forgets a record. Rows are only taken out when many are gone: moving
// all that follow costs more than skipping one.
func (x *index) remove(id string) {
	key, ok := parseID(id)
	if !ok {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dequeue(key)
	delete(x.open, key)
	at, found := x.find(key)
	if !found || x.rows[at].state == deleted {
		return
	}
	x.rows[at].state = deleted
	x.gone++
	if x.gone > len(x.rows)/4 {
		x.rows = slices.DeleteFunc(x.rows, func(r row) bool { return r.state == deleted })
		x.gone = 0
		x.forgetLabels()
	}
}

// forgetLabels drops the sets of labels that no job has any more. Clients name
// their jobs as they like, so there may be as many as there were jobs.
func (x *index) forgetLabels() {
	var kept labelSets
	numbers := make(map[uint32]uint32, len(x.labels.asMap))
	for i := range x.rows {
		old := x.rows[i].labels
		if _, ok := numbers[old]; !ok {
			numbers[old] = kept.number(x.labels.asMap[old])
		}
		x.rows[i].labels = numbers[old]
	}
	x.labels = kept
}

func (x *index) find(key id) (int, bool) {
	return slices.BinarySearchFunc(x.rows, key, func(r row, key id) int { return bytes.Compare(r.id[:], key[:]) })
}

// unfinished returns the jobs that are in one of these states, neither of which is
// an end, without their payloads.
func (x *index) unfinished(states ...State) (out []record) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.open {
		if slices.Contains(states, r.State) {
			out = append(out, r)
		}
	}
	return out
}

// followRecords keeps the index up to date until the context ends.
func (q *Queue) followRecords(ctx context.Context) error {
	watcher, err := q.records.WatchAll(ctx)
	if err != nil {
		return err
	}
	q.following.Go(func() {
		for entry := range watcher.Updates() {
			if entry == nil {
				q.index.load.Do(func() { close(q.index.loaded) })
				continue
			}
			q.indexEntry(entry)
		}
	})
	return nil
}

func (q *Queue) indexEntry(entry jetstream.KeyValueEntry) {
	defer q.bell.ring(entry.Key())
	if entry.Operation() != jetstream.KeyValuePut {
		q.index.remove(entry.Key())
		return
	}
	r, err := decodeRecord(entry.Value(), entry.Revision(), entry.Created())
	if err != nil {
		q.config.Log.Error("history", "job", entry.Key(), "error", err)
		return
	}
	q.index.put(r)
}

// interned numbers strings.
type interned struct {
	numbers map[string]int
	strings []string
}

func (n *interned) number(s string) int {
	if i, ok := n.numbers[s]; ok {
		return i
	}
	if n.numbers == nil {
		n.numbers = make(map[string]int)
	}
	i := len(n.strings)
	n.numbers[s] = i
	n.strings = append(n.strings, s)
	return i
}

// labelSets numbers sets of labels. Most jobs have few different ones.
type labelSets struct {
	sets  interned
	asMap []map[string]string
}

func (l *labelSets) number(labels map[string]string) uint32 {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(name + "\x00" + labels[name] + "\x00")
	}
	i := l.sets.number(b.String())
	if i == len(l.asMap) {
		l.asMap = append(l.asMap, maps.Clone(labels))
	}
	return uint32(i)
}
