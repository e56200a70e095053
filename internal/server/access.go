package server

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"memorymark/internal/admission"
	"memorymark/internal/token"
)

// authorized lets a request through whose token opens its route. It then lasts no
// longer than its token.
func (s *Server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if s.opts.Tokens == nil || c.policy.access == anyone {
			next.ServeHTTP(w, r)
			return
		}
		t, shown, ok, err := s.tokenOf(r)
		byWorker := t.Role == token.Worker
		switch {
		case err != nil:
			s.log.ErrorContext(r.Context(), "tokens cannot be read", "error", err)
			s.fail(w, r, http.StatusInternalServerError, internalText(c))
		case !ok:
			w.Header().Set("WWW-Authenticate", `Bearer realm="MemoryMark"`)
			wrong := "a token is required: send Authorization: Bearer TOKEN; memorymark serve token create makes one"
			if shown {
				wrong = "this token is not known here; memorymark serve token list on the server names those that are"
			}
			s.fail(w, r, http.StatusUnauthorized, wrong)
		case byWorker && c.policy.access == users:
			s.fail(w, r, http.StatusForbidden, "this token is a worker's; it only opens what workers need")
		case !byWorker && c.policy.access == workers:
			s.fail(w, r, http.StatusForbidden, "this is for workers; memorymark serve token create NAME --role worker makes a token for one")
		default:
			c.who, c.owner = t.Name, t.Hash
			r, end := s.opened.begin(w, r, func() bool {
				_, _, ok, err := s.tokenOf(r)
				return ok || err != nil // a file that is being replaced is no reason
			})
			defer end()
			next.ServeHTTP(w, r)
		}
	})
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

// opened are the requests under way that a token opened. They end with their token.
type opened struct {
	mu       sync.Mutex
	requests map[*openedRequest]bool
}

type openedRequest struct {
	valid func() bool // its token, and its session, are still good
	end   func()
}

func newOpened() *opened { return &opened{requests: make(map[*openedRequest]bool)} }

// errRevoked ends a request whose token is not valid any more.
var errRevoked = errors.New("the token was deleted or has expired, or its session has ended")

// begin returns a request that ends when its token is not valid any more.
func (o *opened) begin(w http.ResponseWriter, r *http.Request, valid func() bool) (_ *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	control := http.NewResponseController(w)
	one := &openedRequest{valid, func() {
		cancel(errRevoked)
		// A client that is sending or receiving something is not waited for.
		_ = control.SetReadDeadline(time.Now()) // a connection that cannot has none
		_ = control.SetWriteDeadline(time.Now())
	}}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests[one] = true
	return r.WithContext(ctx), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.requests, one)
		cancel(nil)
	}
}

// endRevoked ends the requests whose tokens are not valid any more, each time until
// they are gone: reading a body slowly sets a new deadline with every piece.
func (o *opened) endRevoked() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for one := range o.requests {
		if !one.valid() {
			one.end()
		}
	}
}

// endRevokedEvery is how long a token that was deleted may still be of use.
const endRevokedEvery = 250 * time.Millisecond

// endRevoked does so until the server stops.
func (s *Server) endRevoked() {
	every := time.NewTicker(endRevokedEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			s.opened.endRevoked()
		case <-s.running.Done():
			return
		}
	}
}

// limited refuses addresses that ask too often.
func (s *Server) limited(next http.Handler) http.Handler {
	if s.opts.Rate <= 0 {
		return next
	}
	rate := admission.NewRate(s.opts.Rate)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" && r.URL.Path != "/ready" && !s.fromWorker(r) { // what watches the server may share an address
			if err := rate.Allow(callOf(r.Context()).from); err != nil {
				setRetryAfter(w.Header(), err)
				s.fail(w, r, http.StatusTooManyRequests, "too many requests from this address; Retry-After says when to try again")
				return
			}
		}
		next.ServeHTTP(w, r)
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

// remoteAddress is where the connection comes from: of IPv6 the network, whose addresses
// one machine may all have. Behind a proxy it is the proxy, for all; headers that say
// otherwise can be made up.
func remoteAddress(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	address := from.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) //nolint:errcheck // it is not too long
		return network.String()
	}
	return address.String()
}
