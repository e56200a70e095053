package server

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// longBody is from how many bytes on a question waits for its turn to be read.
	// Most have a tenth of it.
	longBody = 16 << 10
	// mostLong is how many long questions may wait for their turn, and of those no
	// client's more than half.
	mostLong = 128
	// bodyTime is how long a question may take to arrive.
	bodyTime = 5 * time.Second
)

// read receives the body of a long question and waits for its turn to take it
// apart, which takes up to a hundred times its size in memory, and up to half a
// second. As many are taken apart at a time as there are cores, and clients take
// turns; a client that sends slowly is not among them. It is false if there is
// nothing more to do.
func (s *Server) read(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost || r.ContentLength >= 0 && r.ContentLength < longBody {
		return true
	}
	c := callOf(r.Context())
	if own, all := s.reading.lengths(c.client()); own >= mostLong/2 || all >= mostLong {
		w.Header().Set("Retry-After", "1")
		s.fail(w, r, http.StatusServiceUnavailable, "too many long questions are waiting; try again in a second")
		return false
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a connection that cannot has none
	var body bytes.Buffer
	_, err := io.CopyN(&body, r.Body, maxSmallBody)
	_ = control.SetReadDeadline(time.Time{})
	// Whoever takes the body apart meets what is wrong with it, and says it.
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failing{err}
	}
	r.Body = &wholeBody{io.MultiReader(&body, rest), r.Body}
	if body.Len() < longBody {
		return true
	}
	if s.reading.enter(r.Context(), c.client()) != nil {
		return false
	}
	c.understood = sync.OnceFunc(s.reading.leave)
	return true
}

// wholeBody is a body that has been received.
type wholeBody struct {
	io.Reader
	io.Closer
}

// failing is what comes after the last byte.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
