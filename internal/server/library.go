package server

import (
	"container/list"
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

	mu     sync.Mutex
	books  map[string]*list.Element // of *book
	recent *list.List               // the latest used first
	held   int64
}

// book is a snapshot that is in memory or being read.
type book struct {
	id      string
	done    chan struct{} // closed when the rest is set
	err     error
	file    *snapshot.Snapshot
	devices map[int]*recording.Recording
	cost    int64
	read    bool // guarded by the library's lock, unlike the rest
}

func newLibrary(store *snapshotstore.Store, budget int64) *library {
	return &library{
		store: store, budget: budget, reading: make(chan struct{}, 1),
		books: make(map[string]*list.Element), recent: list.New(),
	}
}

// badSnapshot is a file that is no snapshot.
type badSnapshot struct{ err error }

func (e *badSnapshot) Error() string {
	return fmt.Sprintf("not a snapshot that can be read: %v", e.err)
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
	if e, ok := l.books[id]; ok {
		l.recent.MoveToFront(e)
		return e.Value.(*book)
	}
	b := &book{id: id, done: make(chan struct{})}
	l.books[id] = l.recent.PushFront(b)
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
	b.read = true
	if e, ok := l.books[b.id]; b.err != nil && ok && e.Value == b {
		l.drop(e)
		return
	}
	l.held += b.cost
	for e := l.recent.Back(); l.held > l.budget && e != nil && e.Value != b; {
		before := e.Prev()
		if other := e.Value.(*book); other.read {
			l.drop(e)
		}
		e = before
	}
}

func (l *library) drop(e *list.Element) {
	b := e.Value.(*book)
	l.recent.Remove(e)
	delete(l.books, b.id)
	l.held -= b.cost
}

// forget drops a snapshot that was deleted.
func (l *library) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.books[id]; ok && e.Value.(*book).read {
		l.drop(e)
	}
}

// bytesPerEvent is about what an event takes with all that is computed of it.
const bytesPerEvent = 160

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
	b.devices = make(map[int]*recording.Recording)
	for _, t := range recording.Devices(s) {
		b.devices[t.Device] = recording.New(t)
		b.cost += int64(len(t.Events)) * bytesPerEvent
	}
	b.file = s
	return nil
}
