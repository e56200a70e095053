package server

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/httprate"

	"memorymark/internal/job"
	"memorymark/internal/token"
)

// open are the routes that need no token: they tell nothing that is not in
// MemoryMark's source, but for the name of this machine's card. The page is
// open too; what it shows comes from routes that are not. Workers show their
// token to the engine behind their route.
var open = []string{
	"GET /health", "GET /ready", "GET /openapi.json", "GET /docs", "GET /{$}", "POST /v1/session", "DELETE /v1/session",
	"GET " + job.WorkerPath, "",
}

// forWorkers are the routes that a worker's token opens.
var forWorkers = []string{"POST /v1/snapshots"}

// allowed reports whether a request may have its route; if not it has
// answered.
func (s *Server) allowed(w http.ResponseWriter, r *http.Request, pattern string) bool {
	if s.opts.Tokens == nil || slices.Contains(open, pattern) {
		return true
	}
	secret := secretOf(r)
	t, ok, err := s.opts.Tokens.Find(secret)
	switch {
	case err != nil:
		s.log.ErrorContext(r.Context(), "tokens cannot be read", "error", err)
		s.fail(w, r, http.StatusInternalServerError, internalText(callOf(r.Context())))
	case !ok:
		w.Header().Set("WWW-Authenticate", `Bearer realm="MemoryMark"`)
		wrong := "a token is required: send Authorization: Bearer TOKEN; memorymark token create makes one"
		if secret != "" {
			wrong = "this token is not known here; memorymark token list on the server names those that are"
		}
		s.fail(w, r, http.StatusUnauthorized, wrong)
	case t.Role == token.Worker && !slices.Contains(forWorkers, pattern):
		s.fail(w, r, http.StatusForbidden, "this token is a worker's; it only opens what workers need")
	default:
		callOf(r.Context()).who = t.Name
		return true
	}
	return false
}

// sessionCookie holds a token for the page, out of reach of its scripts.
const sessionCookie = "memorymark_token"

func secretOf(r *http.Request) string {
	if secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return strings.TrimSpace(secret)
	}
	if c, err := r.Cookie(sessionCookie); err == nil {
		return c.Value
	}
	return ""
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
		if r.URL.Path == "/health" || r.URL.Path == "/ready" { // whoever watches the server may share an address
			next.ServeHTTP(w, r)
			return
		}
		limit.ServeHTTP(w, r)
	})
}

// remoteAddress is who the connection comes from. Behind a proxy that is the
// proxy, for all; headers that say otherwise can be made up.
func remoteAddress(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(host), err
}

// sessionSeconds is how long the page stays logged in.
const sessionSeconds = 30 * 24 * 3600

func (s *Server) sessionRoutes(api huma.API) {
	in := post("log-in", "/v1/session", "Log the page in",
		"Keeps a token in a cookie that scripts cannot read, for pages of this server.", tagAccess)
	in.DefaultStatus, in.Errors = http.StatusNoContent, []int{http.StatusUnauthorized, http.StatusUnprocessableEntity}
	huma.Register(api, in, func(ctx context.Context, in *struct{ Body LogIn }) (*session, error) {
		if s.opts.Tokens == nil {
			return &session{}, nil // nobody needs one
		}
		t, ok, err := s.opts.Tokens.Find(in.Body.Token)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		if !ok || t.Role != token.User {
			return nil, huma.Error401Unauthorized("there is no such token for people")
		}
		return &session{SetCookie: s.cookie(in.Body.Token, sessionSeconds)}, nil
	})
	out := huma.Operation{
		OperationID: "log-out", Method: http.MethodDelete, Path: "/v1/session", Summary: "Log the page out",
		Tags: tagAccess, DefaultStatus: http.StatusNoContent,
	}
	huma.Register(api, out, func(context.Context, *struct{}) (*session, error) {
		return &session{SetCookie: s.cookie("", -1)}, nil
	})
}

// LogIn is a token to log in with.
type LogIn struct {
	Token string `json:"token" minLength:"1" maxLength:"200"`
}

type session struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}

func (s *Server) cookie(secret string, age int) http.Cookie {
	return http.Cookie{
		Name: sessionCookie, Value: secret, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: s.opts.TLS, SameSite: http.SameSiteStrictMode,
	}
}
