package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/token"
)

// The limits of sessions. Those of one token cannot push out another's.
const (
	sessionTime     = 7 * 24 * time.Hour
	maxSessions     = 10_000
	maxSessionsEach = 100
)

// sessionCookie holds the id of a session for the page, out of reach of its
// scripts. The id is of no use after the session, and tells nothing of the token.
const sessionCookie = "memorymark_session"

// sessions are those who logged the page in. They are kept in memory: after a
// restart the page asks again.
type sessions struct {
	mu   sync.Mutex
	byID map[[sha256.Size]byte]session // so that how long a look-up takes tells nothing of an id
	now  func() time.Time
}

type session struct {
	token   token.Token
	expires time.Time
}

func newSessions() *sessions {
	return &sessions{byID: make(map[[sha256.Size]byte]session), now: time.Now}
}

// begin begins a session and returns its id.
func (s *sessions) begin(t token.Token) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	own := 0
	var oldest [sha256.Size]byte
	for key, other := range s.byID {
		switch {
		case now.After(other.expires):
			delete(s.byID, key)
		case other.token.Hash == t.Hash:
			if own++; own == 1 || other.expires.Before(s.byID[oldest].expires) {
				oldest = key
			}
		}
	}
	if own >= maxSessionsEach || own > 0 && len(s.byID) >= maxSessions {
		delete(s.byID, oldest)
	}
	id = rand.Text()
	s.byID[sha256.Sum256([]byte(id))] = session{t, now.Add(sessionTime)}
	return id
}

// find returns the token that a session was begun with.
func (s *sessions) find(id string) (token.Token, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.byID[sha256.Sum256([]byte(id))]
	return found.token, ok && s.now().Before(found.expires)
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, sha256.Sum256([]byte(id)))
}

func (s *Server) sessionRoutes(api huma.API) {
	in := post("log-in", "/v1/session", "Log the page in",
		"Begins a session of a week for pages of this server. Its random id is in a cookie that scripts cannot read; the token is not kept there. "+
			"It ends when it is logged out, when its token is deleted or expires, and with the server.", tagAccess)
	in.DefaultStatus, in.Errors = http.StatusNoContent, []int{http.StatusUnauthorized, http.StatusUnprocessableEntity}
	huma.Register(api, in, func(ctx context.Context, in *struct{ Body LogIn }) (*sessionAnswer, error) {
		if s.opts.Tokens == nil {
			return &sessionAnswer{}, nil // no one needs one
		}
		t, ok, err := s.opts.Tokens.Find(in.Body.Token)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		if !ok || t.Role != token.User {
			return nil, huma.Error401Unauthorized("this is not the token of a user")
		}
		return &sessionAnswer{SetCookie: s.cookie(s.sessions.begin(t), int(sessionTime.Seconds()))}, nil
	})
	out := huma.Operation{
		OperationID: "log-out", Method: http.MethodDelete, Path: "/v1/session", Summary: "Log the page out",
		Description: "Ends the session of the cookie: its id opens nothing any more, wherever it was copied to, and its streams end.",
		Tags:        tagAccess, DefaultStatus: http.StatusNoContent,
	}
	huma.Register(api, out, func(_ context.Context, in *struct {
		Session string `cookie:"memorymark_session" maxLength:"200"`
	},
	) (*sessionAnswer, error) {
		s.sessions.end(in.Session)
		s.opened.endRevoked()
		return &sessionAnswer{SetCookie: s.cookie("", -1)}, nil
	})
}

// LogIn is a token to log in with.
type LogIn struct {
	Token string `json:"token" minLength:"1" maxLength:"200"`
}

type sessionAnswer struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}

func (s *Server) cookie(id string, age int) http.Cookie {
	return http.Cookie{
		Name: sessionCookie, Value: id, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: s.opts.TLS, SameSite: http.SameSiteStrictMode,
	}
}
