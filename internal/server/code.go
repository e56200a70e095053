package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/job"
	"memorymark/internal/workload"
)

func (s *Server) registerCode(api huma.API) {
	o := post("begin-code-analysis", "/v1/analyses/code", "Begin an analysis of your own code",
		"Like an analysis, of a model that your own Python function makes: the server hands the files to a worker that was started with --allow-code, "+
			"which runs them with its PyTorch on an emulated card. The code runs as an unprivileged user, without network or the worker's files, "+
			"and with limits on time and memory. Without such a worker, nothing is queued.", tagAnalyses)
	o.DefaultStatus = http.StatusAccepted
	o.Errors = append(o.Errors, http.StatusNotImplemented)
	huma.Register(api, o, func(ctx context.Context, in *struct{ Body CodeQuestion }) (*begun, error) {
		j, joined, err := s.submitCode(ctx, in.Body)
		return s.begun(ctx, j, joined, err)
	})
}

// CodeQuestion is what is asked of a user's own code.
type CodeQuestion struct {
	Code     engine.Code `json:"code"`
	Workload settings    `json:"workload"`
	analysis.Question
}

// settings are a workload without a model.
type settings struct {
	partial
	workload *workload.Workload // set by Resolve
}

// Resolve implements huma.ResolverWithPath.
func (d *settings) Resolve(_ huma.Context, prefix *huma.PathBuffer) []error {
	if _, named := d.keys["model"]; named {
		return []error{&huma.ErrorDetail{Location: prefix.String() + ".model", Message: "the model is the code's; leave it out"}}
	}
	w, err := d.keys.WithoutModel()
	if err == nil && w.GPU != "" {
		_, err = gpu.Find(w.GPU)
	}
	if err != nil {
		return detailsOf(err, prefix.String())
	}
	d.workload = w
	return nil
}

// NoCodeError says that no worker here runs other people's code.
type NoCodeError struct{}

func (e *NoCodeError) Error() string {
	return "no worker here runs user code: start memorymark worker --allow-code on a Linux machine that has a CUDA build of PyTorch, which needs no GPU; " +
		"or run memorymark analyze train.py:make on your own machine"
}

// submitCode queues code, if there is a worker for it.
func (s *Server) submitCode(ctx context.Context, q CodeQuestion) (*job.Job, bool, error) {
	if err := q.Code.Check(); err != nil {
		return nil, false, bad("body.code", "%v", err)
	}
	if !s.hasWorker(engine.CodeQueue) {
		return nil, false, &NoCodeError{}
	}
	w, card, err := s.onCard(q.Workload.workload)
	if err != nil {
		return nil, false, err
	}
	order, err := engine.NewOrder(analysis.Request{Workload: w, Card: card, Question: q.Question}, evidence.Emulated)
	if err != nil {
		return nil, false, err
	}
	order.Code = &q.Code
	payload, err := json.Marshal(order)
	if err != nil {
		return nil, false, err
	}
	labels := map[string]string{
		"model": q.Code.Name(), "gpu": card.ID, "engine": string(evidence.Emulated),
		"precision": string(w.Precision), "optimizer": string(w.Optimizer),
	}
	if w.ID != "" {
		labels["id"] = w.ID
	}
	callOf(ctx).endParse()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	return s.opts.Jobs.Submit(ctx, job.Request{Card: engine.CodeQueue, Payload: payload, Labels: labels})
}
