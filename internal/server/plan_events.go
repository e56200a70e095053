package server

import (
	"context"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"

	"memorymark/internal/plan"
)

// PlanProgress is how much of a plan is made.
type PlanProgress struct {
	Done int64 `json:"done" doc:"parts of the work that are done"`
	Of   int64 `json:"of" doc:"parts that there are; 0 until that is known"`
}

// planEvery is how often the progress of a plan is told.
const planEvery = 200 * time.Millisecond

func (s *Server) planEvents(api huma.API) {
	op := post("watch-plan", "/v1/plans/events", "A plan, and how much of it is made",
		"The question of /v1/plans, answered by server-sent events: progress, five times a second; in the end plan, or problem, if there is none.", tagPredictions)
	op.Middlewares = huma.Middlewares{stream}
	sse.Register(api, op, map[string]any{"progress": PlanProgress{}, "plan": &plan.Plan{}, "problem": &huma.ErrorModel{}}, s.watchPlan)
}

func (s *Server) watchPlan(ctx context.Context, in *struct{ Body PlanQuestion }, send sse.Sender) {
	every := time.NewTicker(planEvery)
	defer every.Stop()
	p, err := s.followPlan(ctx, in.Body, every.C, func(p *progress) {
		_ = send.Data(PlanProgress{p.done.Load(), p.of.Load()}) // who left is seen by the context
	})
	if err == nil {
		_ = send.Data(p)
		return
	}
	var said *huma.ErrorModel
	if errors.As(s.problem(ctx, err), &said) {
		_ = send.Data(said)
	}
}

func (s *Server) followPlan(ctx context.Context, in PlanQuestion, asked <-chan time.Time, say func(*progress)) (*plan.Plan, error) {
	ctx, leave := s.untilStopping(ctx)
	defer leave()
	q, do, err := s.planWork(in)
	if err != nil {
		return nil, err
	}
	p, err := s.compute.follow(ctx, q, func(ctx context.Context) (any, error) { return do(ctx) }, asked, say)
	if err != nil {
		return nil, err
	}
	return p.(*plan.Plan), nil
}
