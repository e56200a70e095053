package snapshot

import (
	"io"
	"sync"
)

const (
	// chunkSize is how much of a file is read at once.
	chunkSize = 256 << 10
	// headroom is the free space before a chunk's bytes, for the rest of the
	// previous chunk.
	headroom = 16 << 10
	// chunks is how many there are: one in use, one full and one being filled.
	chunks = 3
	// maxIdle is how many consecutive reads may return nothing.
	maxIdle = 100
)

// chunk is a piece of a file: the n bytes of buf from headroom on, followed by
// lookahead spare bytes.
type chunk struct {
	buf      []byte
	n        int
	progress float64 // how much of the file was read then, see source
	err      error   // of the read
	panicked any     // recovered from the read
}

// readAhead reads and unpacks a file on another core while the machine runs
// what was read before.
type readAhead struct {
	src    io.ReadCloser
	in     *source
	full   chan chunk
	empty  chan []byte
	closed chan struct{}
	done   sync.WaitGroup
}

func newReadAhead(src io.ReadCloser, in *source) *readAhead {
	a := &readAhead{
		src: src, in: in,
		full: make(chan chunk, chunks), empty: make(chan []byte, chunks), closed: make(chan struct{}),
	}
	for range chunks {
		a.empty <- make([]byte, headroom+chunkSize+lookahead)
	}
	a.done.Go(a.run)
	return a
}

// run fills chunks until the file ends or the reader closes.
func (a *readAhead) run() {
	for idle := 0; ; {
		select {
		case <-a.closed:
			return
		case buf := <-a.empty:
			c := a.fill(buf)
			if idle++; c.n > 0 {
				idle = 0
			}
			if c.err == nil && idle == maxIdle {
				c.err = io.ErrNoProgress
			}
			a.full <- c // it has capacity for all
			if c.err != nil || c.panicked != nil {
				return
			}
		}
	}
}

// fill reads a chunk. A panic of a decompressor is raised again by the caller.
func (a *readAhead) fill(buf []byte) (c chunk) {
	defer func() { c.panicked = recover() }()
	c.buf = buf
	c.n, c.err = a.src.Read(buf[headroom : headroom+chunkSize])
	c.progress = a.in.progress()
	return c
}

// next returns the next chunk. Its buffer goes back with recycle.
func (a *readAhead) next() chunk {
	c := <-a.full
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c
}

func (a *readAhead) recycle(buf []byte) { a.empty <- buf }

// close returns when no read is in progress.
func (a *readAhead) close() {
	close(a.closed)
	a.done.Wait()
	a.src.Close()
}
