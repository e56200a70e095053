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

type workerID struct {
	ID string `path:"id" maxLength:"100"`
}

func (s *Server) workerRoutes(api huma.API) {
	huma.Register(api, get("list-workers", "/v1/workers", "The workers, their cards and what they do", "", tagWorkers),
		func(context.Context, *struct{}) (*output[Fleet], error) {
			out := Fleet{Workers: s.opts.Jobs.Workers(), LeaseSeconds: s.opts.Jobs.Lease().Seconds()}
			if out.Workers == nil {
				out.Workers = []job.Worker{}
			}
			return &output[Fleet]{out}, nil
		})
	drain := post("drain-worker", "/v1/workers/{id}/drain", "Drain a worker",
		"It takes no more analyses, ends those that it has, and leaves. A resident worker, the server's own, stays and waits. "+
			"The answer comes when the worker has said that it drains.", tagWorkers)
	drain.Errors = []int{http.StatusNotFound, http.StatusGatewayTimeout}
	resume := drain
	resume.OperationID, resume.Method, resume.Summary = "resume-worker", http.MethodDelete, "Let a worker that drains continue"
	resume.Description = "It takes analyses again, unless it has already left. A worker that is being stopped on its own machine does not."
	huma.Register(api, drain, s.tellWorker(s.opts.Jobs.Drain))
	huma.Register(api, resume, s.tellWorker(s.opts.Jobs.Resume))
	s.memberRoutes(api)
}

func (s *Server) tellWorker(tell func(context.Context, string) (job.Worker, error)) func(context.Context, *workerID) (*output[job.Worker], error) {
	return func(ctx context.Context, in *workerID) (*output[job.Worker], error) {
		w, err := tell(ctx, in.ID)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return &output[job.Worker]{w}, nil
	}
}
