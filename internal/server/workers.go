package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/job"
)

// Fleet is the workers that were heard of lately.
type Fleet struct {
	Workers []job.Worker `json:"workers"`
	// LeaseSeconds is how long a worker may be silent before it counts as lost.
	LeaseSeconds float64 `json:"lease_seconds" doc:"a worker that was last seen longer ago counts as lost"`
}

func (s *Server) workerRoutes(api huma.API, mux *http.ServeMux) {
	huma.Register(api, get("list-workers", "/v1/workers", "The workers, their cards and what they do", "", tagWorkers),
		func(context.Context, *struct{}) (*output[Fleet], error) {
			out := Fleet{Workers: s.opts.Jobs.Workers(), LeaseSeconds: s.opts.Jobs.Lease().Seconds()}
			if out.Workers == nil {
				out.Workers = []job.Worker{}
			}
			return &output[Fleet]{out}, nil
		})
	mux.Handle("GET "+job.WorkerPath, s.notFromPages(s.opts.Jobs.Handler()))
}

// notFromPages refuses browsers. A page of any origin may open a socket to this
// machine; workers are no pages.
func (s *Server) notFromPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
			s.fail(w, r, http.StatusForbidden, "workers connect here, not pages")
			return
		}
		next.ServeHTTP(w, r)
	})
}
