package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"memorymark/internal/recording"
	"memorymark/internal/snapshot"
	"memorymark/internal/snapshotstore"
)

// library keeps the snapshots that were looked at lately in memory. Reading
// one takes seconds and about as much memory as the file has; so one is read at
// a time, and one more as it arrives. The least recent ones go when they are too
// many, and those that no one looks at any more.
type library struct {
	store     *snapshotstore.Store
	budget    int64 // bytes of memory, about
	unseen    time.Duration
	reading   chan struct{}
	receiving chan struct{}

	mu    sync.Mutex
	books *recent[*book]
}

// unseenTime is how long a snapshot stays in memory after the last look at it.
const unseenTime = 10 * time.Minute

// book is a snapshot that is in memory or being read.
type book struct {
	id      string
	done    chan struct{} // closed when the rest is set
	err     error
	file    *snapshot.Snapshot
	devices map[int]*recording.Recording
	cost    int64
	used    time.Time // when it was last asked for
}

func newLibrary(store *snapshotstore.Store, budget int64) *library {
	return &library{
		store: store, budget: budget, unseen: unseenTime, books: newRecent[*book](budget),
		reading: make(chan struct{}, 1), receiving: make(chan struct{}, 1),
	}
}

// badSnapshot is a file that is no snapshot.
type badSnapshot struct{ err error }

func (e *badSnapshot) Error() string {
	return fmt.Sprintf("not a readable snapshot: %v", e.err)
}
func (e *badSnapshot) Unwrap() error { return e.err }

// open returns a snapshot.
func (l *library) open(ctx context.Context, id string) (*book, error) {
	if _, err := l.store.Get(id); err != nil {
		return nil, err
	}
	b := l.find(id)
	select {
	case <-b.done:
		return b, b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// device returns what one device of a snapshot did.
func (l *library) device(ctx context.Context, id string, device int) (*recording.Recording, error) {
	b, err := l.open(ctx, id)
	if err != nil {
		return nil, err
	}
	t, err := recording.Choose(b.file, device)
	if err != nil {
		return nil, err
	}
	return b.devices[t.Device], nil
}

// find returns a book; one that is not there is begun to be read.
func (l *library) find(id string) *book {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.books.get(id); ok {
		b.used = time.Now()
		return b
	}
	b := &book{id: id, done: make(chan struct{}), used: time.Now()}
	l.books.put(id, b, 0)
	go l.read(b)
	return b
}

func (l *library) read(b *book) {
	l.reading <- struct{}{}
	defer func() { <-l.reading }()
	b.err = b.fetch(l.store, l.budget)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(b.done)
	if b.err != nil {
		l.books.removeValue(b.id, b)
	} else if now, ok := l.books.get(b.id); ok && now == b { // it was not forgotten meanwhile
		l.books.put(b.id, b, b.cost)
	}
}

// forget drops a snapshot that was deleted.
func (l *library) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.books.remove(id)
}

// letGo drops the snapshots that no one looked at for a while, and gives their
// memory back to the machine.
func (l *library) letGo(now time.Time) (count int) {
	l.mu.Lock()
	for b, ok := l.books.oldest(); ok && b.cost > 0 && now.Sub(b.used) > l.unseen; b, ok = l.books.oldest() {
		l.books.remove(b.id)
		count++
	}
	l.mu.Unlock()
	if count > 0 {
		debug.FreeOSMemory()
	}
	return count
}

// fetch reads a snapshot from the store.
func (b *book) fetch(store *snapshotstore.Store, memory int64) error {
	r, err := store.Open(b.id)
	if err != nil {
		return err
	}
	return errors.Join(b.load(r, memory), r.Close())
}

// load reads a snapshot.
func (b *book) load(r io.Reader, memory int64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read snapshot %s: %v", b.id, p)
		}
	}()
	s, err := snapshot.Read(r, snapshot.Limits{Memory: memory, Events: recording.MaxEvents(memory)})
	if err != nil {
		return &badSnapshot{err}
	}
	b.devices, b.cost = make(map[int]*recording.Recording), 1
	for _, t := range recording.Devices(s) {
		b.devices[t.Device] = recording.New(t)
		b.cost += recording.Memory(t)
	}
	b.cost += s.Memory
	b.file = s
	return nil
}
