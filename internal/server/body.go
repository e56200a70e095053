package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// longBody is from how many bytes on a body waits until it may be parsed. Most have
	// a tenth of it.
	longBody = 16 << 10
	// bodyTime is how long a question may take to arrive.
	bodyTime = 5 * time.Second
)

// received receives the body of a request before anything else waits for it, and if it
// is long waits until it may be parsed.
func (s *Server) received(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if r.Method != http.MethodPost || r.ContentLength == 0 || c.policy.body == 0 {
			next.ServeHTTP(w, r)
			return
		}
		size, err := receive(w, r, c.policy.body, min(c.policy.within, s.stall))
		switch {
		case c.left:
			c.status = statusClientGone
			return
		case err != nil:
			s.fail(w, r, http.StatusRequestTimeout, "the question did not arrive in time; send it again")
			return
		}
		if size >= longBody && !c.policy.opaque {
			release, err := s.parsing.Acquire(r.Context(), c.client(), int64(size))
			if err != nil {
				c.status = statusClientGone
				return
			}
			defer release()
			c.endParsing = release
		}
		next.ServeHTTP(w, r)
	})
}

// receive holds a body in memory, as far as it is not too large, and returns how
// many bytes it has.
func receive(w http.ResponseWriter, r *http.Request, limit int64, patience time.Duration) (size int, err error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(patience)) // a connection that cannot has none
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r.Body, limit); err != nil && !errors.Is(err, io.EOF) {
		return 0, err // the deadline stays: nothing waits for the rest
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

// maxSmallBody is more than any request of a user needs.
const maxSmallBody = 1 << 20

// stallTime is how long a client may stand still that sends or gets something. It
// may take as long as it needs.
const stallTime = 30 * time.Second

// minProgress is how many bytes of an upload must come in that time, unless
// fewer are left.
const minProgress = 64 << 10

// patientReader reads a body that may be long but must keep coming.
type patientReader struct {
	control *http.ResponseController
	body    io.Reader
	stall   time.Duration
	due     int // bytes until there is more time
}

func (p *patientReader) Read(data []byte) (int, error) {
	if p.due <= 0 {
		_ = p.control.SetReadDeadline(time.Now().Add(p.stall)) // a connection that cannot has none
		p.due = minProgress
	}
	n, err := p.body.Read(data)
	// At the end, what comes next is another request. After anything else nothing
	// does, and the rest of the body must not be waited for.
	if p.due -= n; errors.Is(err, io.EOF) {
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// sent is a request's body. It notes a client that left before its end,
// which is no failure of the server's.
type sent struct {
	io.ReadCloser
	call *call
}

func (b *sent) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.call.left = b.call.left || errors.Is(err, io.ErrUnexpectedEOF)
	return n, err
}
