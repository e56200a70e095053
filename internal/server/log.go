package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"
)

// call is what is known of a request while it is answered. The parts that a
// request passes fill it in; the log tells it in the end.
type call struct {
	id      string
	pattern string // of the route, "" for none
	policy  policy
	who     string // the name of the token
	owner   string // its hash, "" if none is asked for
	from    string // the address

	release    func() // gives back its slots; nil if it has none
	endParsing func() // lets others parse; nil if it does not

	left   bool // the client left before it had sent all
	status int
	bytes  int64
}

// client is whom a request counts for: a token's owner, or an address.
func (c *call) client() string { return cmp.Or(c.who, c.from) }

// endParse says that the request was parsed, and that its work begins.
func (c *call) endParse() {
	if c.endParsing != nil {
		c.endParsing()
	}
}

type callKey struct{}

// callOf returns the call of a context; one outside any is empty.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return new(call)
}

// recorder notes what a handler answers.
type recorder struct {
	http.ResponseWriter
	call     *call
	patience time.Duration // with who does not read
}

// sending begins to send something: the work is done, so others may begin with
// theirs, and who does not read what comes is not waited for.
func (w *recorder) sending() {
	w.call.endParse()
	if w.call.release != nil {
		w.call.release()
	}
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.patience)) // a connection that cannot has none
}

func (w *recorder) WriteHeader(status int) {
	w.sending()
	if w.call.status == 0 {
		w.call.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(data []byte) (int, error) {
	w.sending()
	if w.call.status == 0 {
		w.call.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(data)
	w.call.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what was written, for streams.
func (w *recorder) Flush() {
	w.sending()
	c := http.NewResponseController(w.ResponseWriter)
	_ = c.Flush()                       // a stream notices by its next write
	_ = c.SetWriteDeadline(time.Time{}) // all was sent; until there is more, a stream may wait
}

// observed numbers, logs and counts requests, and answers for handlers that
// panic.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		c := &call{id: rand.Text()[:16], from: remoteAddress(r)}
		w.Header().Set("X-Request-Id", c.id)
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		defer func() {
			if p := recover(); p != nil {
				s.logPanic(&recorder{w, c, s.stall}, r, p)
			}
			s.logRequest(r, c, time.Since(begin))
		}()
		r.Body = &sent{r.Body, c}
		s.metrics.inFlight.Inc()
		defer s.metrics.inFlight.Dec()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // that of an answer before it is over
		next.ServeHTTP(&recorder{w, c, s.stall}, r)
	})
}

func (s *Server) logPanic(w *recorder, r *http.Request, p any) {
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		return
	}
	s.log.Error("handler panicked", "request", w.call.id, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if w.call.status == 0 {
		s.fail(w, r, http.StatusInternalServerError, internalText(w.call))
	}
}

func (s *Server) logRequest(r *http.Request, c *call, took time.Duration) {
	pattern := c.pattern
	if pattern == "" {
		pattern = "none"
	}
	if c.left && c.status >= http.StatusInternalServerError {
		c.status = statusClientGone
	}
	s.metrics.requests.WithLabelValues(pattern, strconv.Itoa(c.status)).Inc()
	s.metrics.seconds.WithLabelValues(pattern).Observe(took.Seconds())
	level, message := slog.LevelInfo, "request"
	switch {
	case c.status == http.StatusServiceUnavailable:
		level, message = slog.LevelWarn, "request refused"
	case c.status >= http.StatusInternalServerError:
		level = slog.LevelError
	case c.policy.slots == fromWorker && c.status < http.StatusBadRequest:
		level = slog.LevelDebug // a worker asks several times a minute
	}
	s.log.LogAttrs(r.Context(), level, message, slog.String("request", c.id), slog.String("method", r.Method),
		slog.String("path", r.URL.Path), slog.Int("status", c.status), slog.Int64("bytes", c.bytes),
		slog.Duration("took", took), slog.String("remote", r.RemoteAddr), slog.String("token", c.who))
}
