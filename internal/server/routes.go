package server

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/klauspost/compress/gzhttp"
)

// routes is everything that the server answers, and what every request passes on its
// way there: the last line here is the first that it meets.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.legacyRoutes(mux)
	api := humago.New(mux, s.apiConfig())
	s.catalogRoutes(api)
	s.predictionRoutes(api)
	s.comparisonRoutes(api)
	s.planRoutes(api)
	s.studyRoutes(api)
	s.analysisRoutes(api)
	s.workerRoutes(api)
	s.snapshotRoutes(api, mux)
	s.sessionRoutes(api)

	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("GET /ready", s.ready)
	s.documentRoutes(mux, api.OpenAPI())

	h := s.answered(mux)  // by the route, the page or an error
	h = s.received(h)     // its body is here, and is not too much to parse (body.go)
	h = s.admitted(h)     // it has a slot (admission.go)
	h = s.authorized(h)   // its token may have the route (access.go)
	h = s.matched(mux, h) // to its route and policy
	h = s.limited(h)      // its address does not ask too often (access.go)
	h = s.sameSite(h)     // no page of another origin sent it (origin.go)
	h = s.named(h)        // it is for this host (origin.go)
	h = withHeaders(h)
	return s.observed(h) // it has a number, and is logged and counted (log.go)
}

// matched finds the route of a request, and how it is treated.
func (s *Server) matched(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		_, c.pattern = mux.Handler(r)
		c.policy = policyOf(c.pattern)
		next.ServeHTTP(w, r)
	})
}

// answered answers what has no route with the page, or with an error in the form
// that the path's clients expect.
func (s *Server) answered(mux *http.ServeMux) http.Handler {
	packed := gzhttp.GzipHandler(mux)
	page := gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.page(w, r) {
			s.fail(w, r, http.StatusNotFound, notFound)
		}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if c.policy.packed {
			packed.ServeHTTP(w, r)
			return
		}
		if c.pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refusal := refusalProbe{header: http.Header{}}
		h, _ := mux.Handler(r)
		h.ServeHTTP(&refusal, r)
		switch {
		case refusal.status == http.StatusMethodNotAllowed:
			w.Header().Set("Allow", refusal.header.Get("Allow"))
			s.fail(w, r, http.StatusMethodNotAllowed, "Method not allowed")
		case (r.Method == http.MethodGet || r.Method == http.MethodHead) && !strings.HasPrefix(r.URL.Path, "/v1/"):
			page.ServeHTTP(w, r)
		default:
			s.fail(w, r, http.StatusNotFound, notFound)
		}
	})
}

const notFound = "Endpoint not found"

// refusalProbe takes what the mux says of a request without a route: only it
// knows whether another method would have one.
type refusalProbe struct {
	header http.Header
	status int
}

func (p *refusalProbe) Header() http.Header            { return p.header }
func (p *refusalProbe) WriteHeader(status int)         { p.status = status }
func (p *refusalProbe) Write(data []byte) (int, error) { return len(data), nil }
