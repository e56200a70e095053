package server

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/httprate"

	"memorymark/internal/token"
)

// open are the routes that need no token: they tell nothing that is not in
// MemoryMark's source, but for the name of this machine's card. The page is
// open too; what it shows comes from routes that are not.
var open = []string{
	"GET /health", "GET /ready", "GET /openapi.json", "GET /docs", "GET /{$}", "POST /v1/session", "DELETE /v1/session", "",
}

// allowed returns the request if it may have its route, which then lasts no
// longer than its token; if it may not, it has answered.
func (s *Server) allowed(w http.ResponseWriter, r *http.Request, pattern string) (_ *http.Request, done func(), ok bool) {
	if s.opts.Tokens == nil || slices.Contains(open, pattern) {
		return r, func() {}, true
	}
	t, shown, ok, err := s.tokenOf(r)
	switch {
	case err != nil:
		s.log.ErrorContext(r.Context(), "tokens cannot be read", "error", err)
		s.fail(w, r, http.StatusInternalServerError, internalText(callOf(r.Context())))
	case !ok:
		w.Header().Set("WWW-Authenticate", `Bearer realm="MemoryMark"`)
		wrong := "a token is required: send Authorization: Bearer TOKEN; memorymark token create makes one"
		if shown {
			wrong = "this token is not known here; memorymark token list on the server names those that are"
		}
		s.fail(w, r, http.StatusUnauthorized, wrong)
	case t.Role == token.Worker && pattern != uploadPattern && !slices.Contains(memberPatterns, pattern):
		s.fail(w, r, http.StatusForbidden, "this token is a worker's; it only opens what workers need")
	case t.Role != token.Worker && slices.Contains(memberPatterns, pattern):
		s.fail(w, r, http.StatusForbidden, "this is for workers; memorymark token create NAME --role worker makes a token for one")
	default:
		callOf(r.Context()).who, callOf(r.Context()).owner = t.Name, t.Hash
		entered, done := s.guests.enter(w, r, func() bool {
			_, _, ok, err := s.tokenOf(r)
			return ok || err != nil // a file that is being replaced is no reason
		})
		return entered, done, true
	}
	return nil, nil, false
}

// tokenOf returns the token that a request shows, or that its session was begun
// with. shown says whether it has one at all.
func (s *Server) tokenOf(r *http.Request) (t token.Token, shown, ok bool, err error) {
	if secret, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		t, ok, err = s.opts.Tokens.Find(strings.TrimSpace(secret))
		return t, true, ok, err
	}
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return t, false, false, nil //nolint:nilerr // there is none
	}
	if t, ok = s.sessions.find(cookie.Value); !ok {
		return t, false, false, nil // it has ended; who had it needs a token
	}
	ok, err = s.opts.Tokens.Holds(t)
	return t, true, ok, err
}

// limited refuses addresses that ask too often.
func (s *Server) limited(next http.Handler) http.Handler {
	if s.opts.Rate <= 0 {
		return next
	}
	limit := httprate.LimitBy(s.opts.Rate, time.Minute, remoteAddress,
		httprate.WithLimitHandler(func(w http.ResponseWriter, r *http.Request) {
			s.fail(w, r, http.StatusTooManyRequests, "too many requests from this address; Retry-After says when to go on")
		}))(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" || r.URL.Path == "/ready" || s.fromWorker(r) { // whoever watches the server may share an address
			next.ServeHTTP(w, r)
			return
		}
		limit.ServeHTTP(w, r)
	})
}

// fromWorker reports whether a request is a worker's. A rack of workers may come from
// one address, and asks as often as its jobs have news.
func (s *Server) fromWorker(r *http.Request) bool {
	if s.opts.Tokens == nil || !strings.HasPrefix(r.URL.Path, "/v1/workers") {
		return false
	}
	t, _, ok, err := s.tokenOf(r)
	return err == nil && ok && t.Role == token.Worker
}

// remoteAddress is who the connection comes from. Behind a proxy that is the
// proxy, for all; headers that say otherwise can be made up.
func remoteAddress(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(host), err
}
