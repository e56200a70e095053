package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// guests are the requests that are under way by leave of a token. When that ends,
// they do.
type guests struct {
	mu    sync.Mutex
	there map[*guest]bool
}

// guest is one of them.
type guest struct {
	welcome func() bool // the token, and the session, are still good
	leave   func()
}

func newGuests() *guests { return &guests{there: make(map[*guest]bool)} }

// errRevoked ends what somebody may not see any more.
var errRevoked = errors.New("the token was deleted or has expired, or its session has ended")

// enter returns a request that ends when its token does.
func (g *guests) enter(w http.ResponseWriter, r *http.Request, welcome func() bool) (_ *http.Request, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	control := http.NewResponseController(w)
	one := &guest{welcome: welcome, leave: func() {
		cancel(errRevoked)
		// Who is in the midst of sending or getting something is not waited for.
		_ = control.SetReadDeadline(time.Now()) // a connection that cannot has none
		_ = control.SetWriteDeadline(time.Now())
	}}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.there[one] = true
	return r.WithContext(ctx), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.there, one)
		cancel(nil)
	}
}

// dismiss ends the requests of those who are not welcome any more. They are told
// each time until they have gone: whoever reads a body slowly gets a new deadline
// with every piece of it, also after the first word.
func (g *guests) dismiss() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for one := range g.there {
		if !one.welcome() {
			one.leave()
		}
	}
}

// dismissEvery is how long a token that was deleted may still be of use.
const dismissEvery = 250 * time.Millisecond

// dismissing does so until the server stops.
func (s *Server) dismissing() {
	every := time.NewTicker(dismissEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			s.guests.dismiss()
		case <-s.running.Done():
			return
		}
	}
}
