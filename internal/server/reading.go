package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
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

// read receives the body of a question, so that only its sender waits for it, and
// if it is long waits for its turn to take it apart. That takes up to a hundred
// times its size in memory, and up to half a second; so as many are taken apart at
// a time as there are cores, and clients take turns. It is false if there is
// nothing more to do.
func (s *Server) read(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost || r.ContentLength == 0 {
		return true
	}
	c := callOf(r.Context())
	fromMember := slices.Contains(memberPatterns, c.pattern) // whose long parts are opaque, and not taken apart
	mayBeLong := !fromMember && (r.ContentLength < 0 || r.ContentLength >= longBody)
	if own, all := s.reading.lengths(c.client()); mayBeLong && (own >= mostLong/2 || all >= mostLong) {
		w.Header().Set("Retry-After", "1")
		s.fail(w, r, http.StatusServiceUnavailable, "too many long questions are waiting; try again in a second")
		return false
	}
	limit, patience := int64(maxSmallBody), min(bodyTime, s.stall)
	if c.pattern == resultPattern {
		limit, patience = maxResultBody, resultTime
	}
	size, err := receive(w, r, limit, patience)
	switch {
	case c.left:
		c.status = statusClientGone
		return false
	case err != nil:
		s.fail(w, r, http.StatusRequestTimeout, "the question did not arrive in time; send it again")
		return false
	case size < longBody || fromMember:
		return true
	}
	if s.reading.enter(r.Context(), c.client()) != nil {
		return false
	}
	c.understood = sync.OnceFunc(s.reading.leave)
	return true
}

// receive holds a body in memory, as far as it is not too large, and returns how
// many bytes it has.
func receive(w http.ResponseWriter, r *http.Request, limit int64, patience time.Duration) (size int, err error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(patience)) // a connection that cannot has none
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r.Body, limit); err != nil && !errors.Is(err, io.EOF) {
		return 0, err // the deadline stays: nobody waits for the rest
	}
	_ = control.SetReadDeadline(time.Time{})
	size = body.Len()
	r.Body = &wholeBody{io.MultiReader(&body, r.Body), r.Body}
	return size, nil
}

// wholeBody is a body that has been received.
type wholeBody struct {
	io.Reader
	io.Closer
}
