// Package browser answers the page's questions without a server: those of the API that
// are predicted, in the page itself. Requests and answers are those of the API.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/invalid"
	"memorymark/internal/plan"
	"memorymark/internal/predict"
	"memorymark/internal/reply"
	"memorymark/internal/workload"
)

// handler answers a request's body.
type handler func(ctx context.Context, body []byte) (any, error)

// handlers are the questions that need no server, by method and path.
var handlers = map[string]handler{
	"GET /health":    always(map[string]any{"status": "healthy", "gpu_available": false, "gpu_name": nil, "gpu_memory_total_gb": nil, "device": "browser"}),
	"GET /v1/models": func(context.Context, []byte) (any, error) { return map[string]any{"models": workload.Models()}, nil },
	"GET /v1/gpus": func(context.Context, []byte) (any, error) {
		return map[string]any{"gpus": gpu.All(), "default": gpu.Default}, nil
	},
	"GET /v1/workers":  always(map[string]any{"workers": []any{}}),
	"GET /v1/analyses": always(map[string]any{"analyses": []any{}}),

	"POST /v1/predictions":          prediction,
	"POST /v1/predictions/analysis": func(_ context.Context, body []byte) (any, error) { return answered(body, analysis.Predict) },
	"POST /v1/predictions/curve": func(_ context.Context, body []byte) (any, error) {
		return answered(body, func(r analysis.Request) (*analysis.Curve, error) { return analysis.PredictCurve(r, curvePoints) })
	},
	"POST /v1/comparisons/cards":    cards,
	"POST /v1/comparisons/settings": settings,
	"POST /v1/fits":                 fit,
	"POST /v1/plans":                makePlan,
	"POST /v1/plans/events":         makePlan,
}

// curvePoints is how many batches a curve looks at, as the API does.
const curvePoints = 16

func always(v any) handler { return func(context.Context, []byte) (any, error) { return v, nil } }

// Ask answers a request of the page.
func Ask(ctx context.Context, method, target string, body []byte) reply.Reply {
	at, err := url.Parse(target)
	if err != nil {
		return reply.Problem(reply.NotFound, "there is no such address")
	}
	do, known := handlers[method+" "+at.Path]
	if !known {
		return reply.NeedsServer()
	}
	value, err := do(ctx, body)
	if err != nil {
		return refused(err)
	}
	answer := reply.JSON(reply.OK, value)
	if at.Path == "/v1/plans/events" && answer.Status == reply.OK {
		answer.Type, answer.Body = "text/event-stream", slices.Concat([]byte("event: plan\ndata: "), answer.Body, []byte("\n\n"))
	}
	return answer
}

// refused is the answer to a question with mistakes: each with its key.
func refused(err error) reply.Reply {
	var all *invalid.Error
	if !errors.As(err, &all) {
		return reply.Problem(reply.Unprocessable, err.Error())
	}
	return reply.Problem(reply.Unprocessable, "validation failed", detailsOf(all, "body")...)
}

// detailsOf says where each mistake is. Workloads are the body, or its key workload; the
// page looks for the last word.
func detailsOf(err error, place string) []reply.Detail {
	//nolint:errorlint // only what is on the outside says where it is
	switch e := err.(type) {
	case *invalid.Problem:
		return detailsOf(e.Err, place+"."+e.Key)
	case *gpu.UnknownError:
		place += ".gpu"
	case interface{ Unwrap() []error }:
		var out []reply.Detail
		for _, one := range e.Unwrap() {
			out = append(out, detailsOf(one, place)...)
		}
		return out
	}
	return []reply.Detail{{Message: err.Error(), Location: place}}
}

// question is the body of most requests.
type question struct {
	Workload workload.Draft `json:"workload"`
	analysis.Question
}

// request reads a question.
func (q *question) request() (r analysis.Request, err error) {
	r.Question, r.Given = q.Question, change.Given(q.Workload)
	r.Workload, r.Card, err = onCard(q.Workload)
	return r, err
}

// onCard is a workload with its card settled.
func onCard(d workload.Draft) (*workload.Workload, *gpu.Card, error) {
	w, err := d.Workload()
	if err != nil {
		return nil, nil, err
	}
	card, err := gpu.Unnamed(nil, gpu.Default)
	if w.GPU != "" {
		card, err = gpu.Find(w.GPU)
	}
	if err != nil {
		return nil, nil, err
	}
	w.GPU = card.ID
	return w, card, nil
}

func read[T any](body []byte) (*T, error) {
	into := new(T)
	if err := json.Unmarshal(body, into); err != nil {
		return nil, fmt.Errorf("the request is not what this question takes: %w", err)
	}
	return into, nil
}

func answered[T any](body []byte, do func(analysis.Request) (T, error)) (any, error) {
	q, err := read[question](body)
	if err != nil {
		return nil, err
	}
	r, err := q.request()
	if err != nil {
		return nil, err
	}
	return do(r)
}

func prediction(_ context.Context, body []byte) (any, error) {
	d, err := workload.ParseDraft(body)
	if err != nil {
		return nil, err
	}
	w, card, err := onCard(d)
	if err != nil {
		return nil, err
	}
	id := w.ID
	w.ID = ""
	p, err := predict.Predict(w, card, predict.Options{})
	if err != nil {
		return nil, err
	}
	out := &analysis.Prediction{Prediction: *p}
	if id != "" {
		out = out.WithID(id)
	}
	return out, nil
}

// alone has no one to share the machine with.
func alone(_ context.Context, work func() error) error { return work() }

func cards(ctx context.Context, body []byte) (any, error) {
	q, err := read[struct {
		question
		GPUs []string `json:"gpus"`
	}](body)
	if err != nil {
		return nil, err
	}
	r, err := q.request()
	if err != nil {
		return nil, err
	}
	among := gpu.All()
	if q.GPUs != nil {
		if among, err = find(q.GPUs); err != nil {
			return nil, err
		}
	}
	rows, err := analysis.CompareCards(ctx, r, among, alone)
	return map[string]any{"cards": rows, "accuracy": predict.AccuracyOf(r.Workload)}, err
}

func find(ids []string) ([]*gpu.Card, error) {
	var out []*gpu.Card
	for _, id := range ids {
		card, err := gpu.Find(id)
		if err != nil {
			return nil, err
		}
		out = append(out, card)
	}
	return out, nil
}

func settings(ctx context.Context, body []byte) (any, error) {
	q, err := read[struct {
		question
		Precisions    []workload.Precision `json:"precisions"`
		Optimizers    []workload.Optimizer `json:"optimizers"`
		Checkpointing []bool               `json:"checkpointing"`
	}](body)
	if err != nil {
		return nil, err
	}
	r, err := q.request()
	if err != nil {
		return nil, err
	}
	rows, err := analysis.CompareSettings(ctx, r, analysis.GridSettings{Precisions: q.Precisions, Optimizers: q.Optimizers, Checkpointing: q.Checkpointing}, alone)
	return map[string]any{"settings": rows, "accuracy": predict.AccuracyOf(r.Workload)}, err
}

func fit(ctx context.Context, body []byte) (any, error) {
	q, err := read[struct {
		Workload workload.Draft `json:"workload"`
		Reserve  bytesize.Bytes `json:"reserve_bytes"`
		Full     bool           `json:"full"`
	}](body)
	if err != nil {
		return nil, err
	}
	_, card, err := onCard(q.Workload)
	if err != nil {
		return nil, err
	}
	keys := maps.Clone(q.Workload)
	delete(keys, "gpu") // which the card stands for
	return plan.MakeFit(ctx, plan.FitQuestion{Draft: keys, Card: card, Reserve: q.Reserve, Full: q.Full})
}

func makePlan(ctx context.Context, body []byte) (any, error) {
	in, err := read[struct {
		Workload    workload.Draft `json:"workload"`
		GPUs        []string       `json:"gpus"`
		MaxGPUs     int64          `json:"max_gpus"`
		GlobalBatch int64          `json:"global_batch"`
		Tokens      figure.Amount  `json:"tokens"`
		Samples     figure.Amount  `json:"samples"`
		Full        bool           `json:"full"`
		Within      plan.Budget    `json:"within"`
	}](body)
	if err != nil {
		return nil, err
	}
	q := plan.Question{
		Draft: in.Workload, MaxGPUs: in.MaxGPUs, GlobalBatch: in.GlobalBatch, Tokens: in.Tokens, Samples: in.Samples,
		Full: in.Full, Within: in.Within, Cards: plan.Cards(),
	}
	if in.GPUs != nil {
		among, err := find(in.GPUs)
		if err != nil {
			return nil, err
		}
		q.Cards = nil
		for _, c := range among {
			q.Cards = append(q.Cards, plan.Holding{Card: c})
		}
	}
	return plan.Make(ctx, q, nil)
}
