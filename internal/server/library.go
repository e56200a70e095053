package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"memorymark/internal/recording"
	"memorymark/internal/snapshot"
	"memorymark/internal/snapshotstore"
)

// library keeps the snapshots that were looked at lately in memory. Reading
// one takes seconds and about as much memory as the file has; so one is read at
// a time, and the least recent ones go when they are too many.
type library struct {
	store   *snapshotstore.Store
	budget  int64 // bytes of memory, about
	reading chan struct{}

	mu    sync.Mutex
	books *recent[*book]
}

// book is a snapshot that is in memory or being read.
type book struct {
	id      string
	done    chan struct{} // closed when the rest is set
	err     error
	file    *snapshot.Snapshot
	devices map[int]*recording.Recording
	cost    int64
}

func newLibrary(store *snapshotstore.Store, budget int64) *library {
	return &library{store: store, budget: budget, reading: make(chan struct{}, 1), books: newRecent[*book](budget)}
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
		return b
	}
	b := &book{id: id, done: make(chan struct{})}
	l.books.put(id, b, 0)
	go l.read(b)
	return b
}

func (l *library) read(b *book) {
	l.reading <- struct{}{}
	defer func() { <-l.reading }()
	b.err = b.load(l.store, l.budget)
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

func (b *book) load(store *snapshotstore.Store, memory int64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read snapshot %s: %v", b.id, p)
		}
	}()
	r, err := store.Open(b.id)
	if err != nil {
		return err
	}
	s, err := snapshot.Read(r, snapshot.Limits{Memory: memory})
	if err := errors.Join(err, r.Close()); err != nil {
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
