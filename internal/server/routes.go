package server

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/klauspost/compress/gzhttp"
)

// routes is everything that the server answers.
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
	return s.orElse(mux)
}

// orElse answers what has no route: with the page, or with an error in the
// form that the path's clients expect.
func (s *Server) orElse(mux *http.ServeMux) http.Handler {
	packed := gzhttp.GzipHandler(mux)
	page := gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.page(w, r) {
			s.fail(w, r, http.StatusNotFound, notFound)
		}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		callOf(r.Context()).pattern = pattern
		r, done, ok := s.allowed(w, r, pattern)
		if !ok {
			return
		}
		defer done()
		leave, ok := s.enter(pattern, callOf(r.Context()).client())
		if !ok {
			w.Header().Set("Retry-After", "1")
			s.fail(w, r, http.StatusServiceUnavailable, "too many requests are being answered; try again in a second")
			return
		}
		callOf(r.Context()).leave = leave
		defer leave()
		if pattern != uploadPattern && !s.read(w, r) {
			return
		}
		defer callOf(r.Context()).read()
		switch {
		case strings.HasPrefix(pattern, "GET /v1/snapshots/{id}/") || pattern == "POST /v1/sweeps":
			packed.ServeHTTP(w, r) // rows of numbers, which shrink to a fifth
			return
		case pattern != "":
			mux.ServeHTTP(w, r)
			return
		}
		refusal := refusalProbe{header: http.Header{}}
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

// mostInside is how many requests are answered at a time. Beyond it they would
// only take memory from each other.
const mostInside = 1024

// mostUploads is how many uploads may come at a time, beside the others: they take
// as long as their senders.
const mostUploads = 64

// mostPolls is how many requests of workers may be under way. Most of them wait: a
// worker has one for each card, and another.
const mostPolls = 8192

// places are those of requests under way. No client has more than half of them,
// so that one that sends slowly cannot keep all others out.
type places struct {
	mu    sync.Mutex
	most  int
	taken map[string]int // by client
	all   int
}

func newPlaces(most int) *places { return &places{most: most, taken: make(map[string]int)} }

// enter takes a place; ok is false if there is none.
func (p *places) enter(client string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= p.most || p.taken[client] >= max(p.most/2, 1) {
		return nil, false
	}
	p.all++
	p.taken[client]++
	return sync.OnceFunc(func() { p.leave(client) }), true
}

func (p *places) leave(client string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.taken[client]--; p.taken[client] == 0 {
		delete(p.taken, client)
	}
}

// uploadPattern is the route of what is too large to be held.
const uploadPattern = "POST /v1/snapshots"

// uncounted are routes whose answers last and that wait more than they work, and
// those by which others see that the server is well.
var uncounted = []string{"GET /v1/analyses/{id}/events", "POST /analyze", "GET /health", "GET /ready"}

// enter counts a request in; ok is false if there are too many.
func (s *Server) enter(pattern, client string) (leave func(), ok bool) {
	switch {
	case slices.Contains(memberPatterns, pattern):
		return s.polls.enter(client)
	case slices.Contains(uncounted, pattern):
		return func() {}, true
	case pattern == uploadPattern:
		return s.uploads.enter(client)
	default:
		return s.inside.enter(client)
	}
}

// refusalProbe takes what the mux says of a request without a route: only it
// knows whether another method would have one.
type refusalProbe struct {
	header http.Header
	status int
}

func (p *refusalProbe) Header() http.Header            { return p.header }
func (p *refusalProbe) WriteHeader(status int)         { p.status = status }
func (p *refusalProbe) Write(data []byte) (int, error) { return len(data), nil }
