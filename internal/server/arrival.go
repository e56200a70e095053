package server

import (
	"context"
	"io"
	"time"
)

// arrival is a snapshot that is read while it arrives, so that it is in memory
// soon after its last byte. One is read like this at a time, and if that fails,
// or it is too large, it is read from the store when it is asked for. So a
// client that is slow, or sends something else, delays no other.
type arrival struct {
	library *library
	bytes   *io.PipeWriter // nil if it is not read
	book    *book
}

// arrivalShare is what part of the library's budget an arrival may take.
const arrivalShare = 4

// arrive begins to read a snapshot of that many bytes, -1 if that is not known.
func (l *library) arrive(size int64) *arrival {
	a := &arrival{library: l, book: &book{done: make(chan struct{})}}
	select {
	case l.receiving <- struct{}{}:
	default: // another one is being read like this
		close(a.book.done)
		return a
	}
	var from *io.PipeReader
	from, a.bytes = io.Pipe()
	go func() {
		defer func() { <-l.receiving }()
		defer close(a.book.done)
		a.book.err = a.book.load(sized{from, size}, l.budget/arrivalShare)
		_ = from.Close() // what is still written is thrown away
	}()
	return a
}

// sized is a stream whose length is known.
type sized struct {
	io.Reader
	size int64
}

func (s sized) Size() int64 { return s.size }

// Write implements io.Writer. Nothing that happens to the reading is an error.
func (a *arrival) Write(data []byte) (int, error) {
	if a.bytes != nil {
		_, _ = a.bytes.Write(data)
	}
	return len(data), nil
}

// end says that no more bytes come: nil if that was all of them.
func (a *arrival) end(err error) {
	if a.bytes != nil {
		a.bytes.CloseWithError(err) // nil is the end of the file
	}
}

// keep puts what was read into the library under its id, unless that is there
// already.
func (a *arrival) keep(ctx context.Context, id string) {
	l, b := a.library, a.book
	select {
	case <-b.done:
	case <-ctx.Done():
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.books.get(id); ok || b.file == nil {
		return
	}
	b.id, b.used = id, time.Now()
	l.books.put(id, b, b.cost)
}
