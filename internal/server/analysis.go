package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/job"
	"memorymark/internal/workload"
)

func (s *Server) analysisRoutes(api huma.API) {
	begin := post("begin-analysis", "/v1/analyses", "Begin an analysis",
		"Finds the largest batch that trains and what follows from it. The answer comes later: look at the address in Location, or at its events. "+
			"A question that is being answered already is not asked twice; then joined is true.", tagAnalyses)
	begin.DefaultStatus = http.StatusAccepted
	begin.Errors = append(begin.Errors, http.StatusInsufficientStorage)
	huma.Register(api, begin, s.beginAnalysis)
	s.registerCode(api)
	s.registerPicture(api)
	huma.Register(api, get("get-analysis", "/v1/analyses/{id}", "An analysis and, when it has succeeded, its answer",
		"", tagAnalyses, http.StatusNotFound), s.getAnalysis)
	huma.Register(api, get("list-analyses", "/v1/analyses", "The history, newest first",
		"Filters are combined. A page ends with next, to be given as after.", tagAnalyses), s.listAnalyses)
	huma.Register(api, huma.Operation{
		OperationID: "cancel-analysis", Method: http.MethodDelete, Path: "/v1/analyses/{id}", Tags: tagAnalyses,
		Summary: "Cancel an analysis, or forget it", Description: "Cancels one that has not ended. With forget, removes one that has from the history.",
		Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.cancelAnalysis)
	s.eventRoutes(api)
}

// Analysis is an analysis that was asked for, and what became of it.
type Analysis struct {
	ID       string             `json:"id"`
	State    job.State          `json:"state" enum:"queued,running,succeeded,failed,cancelled"`
	Engine   evidence.Engine    `json:"engine" enum:"predicted,emulated,measured"`
	GPU      string             `json:"gpu" doc:"id of the card"`
	Workload *workload.Workload `json:"workload,omitempty"`
	Joined   bool               `json:"joined,omitempty" doc:"another client had asked the same"`
	Attempt  int                `json:"attempt,omitempty" doc:"how often a worker took it"`
	Worker   string             `json:"worker,omitempty" doc:"who took it last"`
	Reason   string             `json:"reason,omitempty" doc:"why it failed, was cancelled or waits again; a list has the beginning"`
	Queued   time.Time          `json:"queued"`
	Started  *time.Time         `json:"started,omitempty"`
	Ended    *time.Time         `json:"ended,omitempty"`
	Answer   *analysis.Answer   `json:"answer,omitempty" doc:"once it has succeeded"`
}

type begun struct {
	Location string `header:"Location"`
	Body     *Analysis
}

func (s *Server) beginAnalysis(ctx context.Context, in *struct{ Body Question }) (*begun, error) {
	j, joined, err := s.submit(ctx, in.Body)
	return s.begun(ctx, j, joined, err)
}

// begun answers with what was submitted, or why it was not.
func (s *Server) begun(ctx context.Context, j *job.Job, joined bool, err error) (*begun, error) {
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	a, err := newAnalysis(j)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	a.Joined = joined
	return &begun{"/v1/analyses/" + j.ID, a}, nil
}

// submitTime is how long storing an analysis may take.
const submitTime = 15 * time.Second

// submit queues a question. It is durable when this returns. It is stored in
// two steps, and a client that leaves in between must not keep the second one
// from others who join.
func (s *Server) submit(ctx context.Context, q Question) (*job.Job, bool, error) {
	r, err := s.request(q)
	if err != nil {
		return nil, false, err
	}
	chosen, queue := s.engine(q.Engine, r)
	if chosen == evidence.Predicted && q.Workload.problems != nil {
		return nil, false, &badRequest{q.Workload.problems}
	}
	order, err := engine.NewOrder(r, chosen)
	if err != nil {
		return nil, false, err
	}
	payload, err := json.Marshal(order)
	if err != nil {
		return nil, false, err
	}
	labels := map[string]string{
		"model": r.Workload.Name(), "gpu": r.Card.ID, "engine": string(chosen),
		"precision": string(r.Workload.Precision), "optimizer": string(r.Workload.Optimizer),
	}
	if id := r.Workload.ID; id != "" {
		labels["id"] = id
	}
	callOf(ctx).endParse()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	return s.opts.Jobs.Submit(ctx, job.Request{Card: queue, Payload: payload, Labels: labels})
}

// engine decides which engine answers, by what the workers have, and in which queue
// it is waited for. Any worker can predict.
func (s *Server) engine(asked evidence.Engine, r analysis.Request) (chosen evidence.Engine, queue string) {
	has := engine.Means{Card: s.hasWorker(r.Card.ID), Emulation: s.hasWorker(engine.EmulationQueue)}
	switch chosen = engine.Choose(asked, r.Workload, r.Workload.Unmodelled == "", has); chosen {
	case evidence.Measured:
		return chosen, r.Card.ID
	case evidence.Emulated:
		return chosen, engine.EmulationQueue
	default:
		return chosen, job.Any
	}
}

func (s *Server) hasWorker(card string) bool {
	return slices.ContainsFunc(s.opts.Jobs.Workers(), func(w job.Worker) bool {
		return !w.Draining && time.Since(w.Seen) < s.opts.Jobs.Lease() &&
			slices.ContainsFunc(w.Cards, func(c job.Card) bool { return c.ID == card })
	})
}

func newAnalysis(j *job.Job) (*Analysis, error) {
	if len(j.Payload) == 0 { // it was lost with the disk; what became of the analysis was not
		return &Analysis{ID: j.ID, State: j.State, GPU: j.Card, Reason: j.Reason, Queued: j.Queued, Ended: known(j.Ended)}, nil
	}
	order, err := engine.ParseOrder(j.Payload)
	if err != nil {
		return nil, err
	}
	w, err := order.ParseWorkload()
	if err != nil {
		return nil, err
	}
	w.ID = j.Labels["id"]
	return &Analysis{
		ID: j.ID, State: j.State, Engine: order.Engine, GPU: order.GPU, Workload: w, Attempt: j.Attempt, Worker: j.Worker, Reason: j.Reason,
		Queued: j.Queued, Started: known(j.Started), Ended: known(j.Ended),
	}, nil
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// describe is newAnalysis with the answer, if there is one.
func (s *Server) describe(ctx context.Context, j *job.Job) (*Analysis, error) {
	a, err := newAnalysis(j)
	if err != nil || j.State != job.Succeeded {
		return a, err
	}
	a.Answer, err = s.result(ctx, j.ID)
	if errors.Is(err, job.ErrDamaged) || errors.Is(err, job.ErrNoResult) {
		a.Reason = job.ErrDamaged.Error()
		return a, nil
	}
	return a, err
}

func (s *Server) result(ctx context.Context, id string) (*analysis.Answer, error) {
	data, err := s.opts.Jobs.Result(ctx, id)
	if err != nil {
		return nil, err
	}
	var a analysis.Answer
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("read the result of %s: %w", id, err)
	}
	return &a, nil
}

// analysisID is the path of one analysis.
type analysisID struct {
	ID string `path:"id" maxLength:"100"`
}

func (s *Server) getAnalysis(ctx context.Context, in *analysisID) (*output[*Analysis], error) {
	j, err := s.opts.Jobs.Get(ctx, in.ID)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	a, err := s.describe(ctx, j)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	return &output[*Analysis]{a}, nil
}

// cancelInput names an analysis to be cancelled or forgotten.
type cancelInput struct {
	ID     string `path:"id" maxLength:"100"`
	Forget bool   `query:"forget" doc:"remove one that has ended from the history"`
}

func (s *Server) cancelAnalysis(ctx context.Context, in *cancelInput) (*struct{}, error) {
	var err error
	if in.Forget {
		err = s.opts.Jobs.Delete(ctx, in.ID)
	} else {
		_, err = s.opts.Jobs.Cancel(ctx, in.ID, "cancelled over the API")
	}
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	return nil, nil //nolint:nilnil // there is nothing to say
}

// waitForAnalysis answers a question when its analysis is done. When the
// caller leaves, the analysis continues: others may wait for it, and it is in
// the history.
func (s *Server) waitForAnalysis(ctx context.Context, q Question) (*analysis.Answer, error) {
	j, _, err := s.submit(ctx, q)
	if err != nil {
		return nil, err
	}
	ctx, leave := s.untilStopping(ctx)
	defer leave()
	if j, err = s.opts.Jobs.Wait(ctx, j.ID); err != nil {
		if errors.Is(context.Cause(ctx), errStopping) {
			return nil, errStopping
		}
		return nil, err
	}
	if j.State != job.Succeeded {
		return nil, &endedError{j}
	}
	return s.result(ctx, j.ID)
}

// endedError is an analysis that has no answer.
type endedError struct{ job *job.Job }

func (e *endedError) Error() string {
	return fmt.Sprintf("the analysis %s: %s", map[job.State]string{job.Failed: "failed", job.Cancelled: "was cancelled"}[e.job.State], e.job.Reason)
}

// errStopping ends what would last longer than the server.
var errStopping = errors.New("the server is stopping; try again when it is back")

// untilStopping is a context that also ends when the server stops.
func (s *Server) untilStopping(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.running, func() { cancel(errStopping) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
