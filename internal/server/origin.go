package server

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/rs/cors"
)

// withHeaders tells browsers to take answers for nothing but what they are.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Security-Policy",
			"default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
		next.ServeHTTP(w, r)
	})
}

// named refuses requests for other hosts. A page elsewhere whose name is made
// to point at this machine would otherwise be of the same origin.
func (s *Server) named(next http.Handler) http.Handler {
	if s.opts.Hosts == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.ToLower(strings.Trim(host, "[]"))
		if !slices.Contains(s.opts.Hosts, host) {
			s.fail(w, r, http.StatusMisdirectedRequest, "this server does not answer for that host")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameSite refuses what a page of another origin sends, unless its origin was
// allowed by name or all are.
func (s *Server) sameSite(next http.Handler) http.Handler {
	if len(s.opts.Origins) == 0 {
		return s.protected(next)
	}
	shared := cors.New(cors.Options{
		AllowedOrigins: s.opts.Origins,
		AllowedMethods: []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Last-Event-ID"},
		ExposedHeaders: []string{"Location", "X-Request-Id", "Retry-After"},
		MaxAge:         600,
	})
	if slices.Contains(s.opts.Origins, "*") {
		return shared.Handler(next)
	}
	return shared.Handler(s.protected(next))
}

func (s *Server) protected(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	for _, origin := range s.opts.Origins {
		if err := p.AddTrustedOrigin(origin); err != nil {
			panic(err) // New has looked at them
		}
	}
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, http.StatusForbidden, "pages of other origins may not do this; memorymark serve --allow-origin allows one by name")
	}))
	return p.Handler(next)
}
