package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/analysis"
	"memorymark/internal/change"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/snapshot"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

func (s *Server) predictionRoutes(api huma.API) {
	s.registerPredict(api)
	huma.Register(api, post("predict-analysis", "/v1/predictions/analysis", "The largest batch, predicted",
		"The answer of an analysis from predictions alone, in the request. With changes it says what each single change would do.", tagPredictions),
		predictedOperation(s, "analysis", func(r analysis.Request) (*analysis.Answer, error) {
			a, err := analysis.Predict(r)
			if no := analysis.Refusal(err); no != nil { // that nothing trains is an answer, too
				return no, nil
			}
			return a, err
		}))
	huma.Register(api, post("predict-curve", "/v1/predictions/curve", "Memory and throughput against the batch",
		"Simulated batches from 1 to a little beyond the largest that trains.", tagPredictions),
		predictedOperation(s, "curve", func(r analysis.Request) (*analysis.Curve, error) { return analysis.PredictCurve(r, curvePoints) }))
	keep := post("predict-snapshot", "/v1/predictions/snapshot", "A workload's process as a snapshot",
		"The model built, the batch, three steps: kept under an id whose timeline, top and replay can be looked at like a recording's.", tagPredictions)
	keep.DefaultStatus = http.StatusCreated
	huma.Register(api, keep, func(ctx context.Context, in *struct{ Body draft }) (*created, error) {
		snap, err := s.predictSnapshot(ctx, in.Body)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return &created{"/v1/snapshots/" + snap.ID, snap}, nil
	})
}

type created struct {
	Location string `header:"Location"`
	Body     *Snapshot
}

// predictSnapshot keeps the predicted process. The same workload is the same
// file, written once unless it was removed.
func (s *Server) predictSnapshot(ctx context.Context, d draft) (*Snapshot, error) {
	w, card, err := s.onCard(d.workload)
	if err != nil {
		return nil, err
	}
	q := question{key: "snapshot " + keyOf(w), long: w.Config.Layers() >= longLayers/2}
	write := func(ctx context.Context) (snapshotstore.Entry, error) { return s.writePrediction(ctx, w, card) }
	entry, err := remembered(ctx, s.compute, q, write)
	if err != nil {
		return nil, err
	}
	if _, err := s.opts.Snapshots.Get(entry.ID); err != nil {
		s.compute.forget(q.key)
		if entry, err = remembered(ctx, s.compute, q, write); err != nil {
			return nil, err
		}
	}
	return s.describeSnapshot(ctx, entry)
}

func (s *Server) writePrediction(ctx context.Context, w *workload.Workload, card *gpu.Card) (none snapshotstore.Entry, err error) {
	sim, err := predict.Run(w, card, predict.Options{Budget: workbudget.New(workbudget.PerQuestion, ctx.Err)})
	if err != nil {
		return none, predicted(err)
	}
	t, err := sim.Trace()
	if err != nil {
		return none, predicted(err)
	}
	u, err := s.opts.Snapshots.Create()
	if err != nil {
		return none, err
	}
	if err := snapshot.Write(u, &snapshot.Snapshot{Devices: []*trace.Trace{t}}); err != nil {
		u.Abort()
		return none, err
	}
	return u.Commit(fmt.Sprintf("%s, batch %d, on an %s", w.Name(), w.Batch, card.Name), snapshotstore.Predicted)
}

// curvePoints is how many batches a curve looks at; memory is nearly a line.
const curvePoints = 16

// simulate predicts what a workload takes, unless something is wrong with it.
func (s *Server) simulate(ctx context.Context, w *workload.Workload, card *gpu.Card, problems []error) (*analysis.Prediction, error) {
	if problems != nil {
		return nil, &badRequest{problems}
	}
	q := question{key: "prediction " + keyOf(w), long: w.Config.Layers() >= longLayers}
	return remembered(ctx, s.compute, q, func(ctx context.Context) (*analysis.Prediction, error) {
		p, err := predict.Predict(w, card, predict.Options{Budget: workbudget.New(workbudget.PerQuestion, ctx.Err)})
		if err != nil {
			return nil, predicted(err)
		}
		return &analysis.Prediction{Prediction: *p}, nil
	})
}

// onCard returns the workload with its card settled: the one it names, this
// machine's, or the default.
func (s *Server) onCard(w *workload.Workload) (*workload.Workload, *gpu.Card, error) {
	card, err := s.card(w.GPU, gpu.Default)
	if err != nil {
		return nil, nil, err
	}
	at := *w
	at.GPU = card.ID
	return &at, card, nil
}

// card is the card that is named, this machine's, or another.
func (s *Server) card(name, otherwise string) (*gpu.Card, error) {
	if name != "" {
		return gpu.Find(name)
	}
	here, _ := s.machine()
	return gpu.Unnamed(here, otherwise)
}

// longLayers is from how many layers on a single prediction takes long. Questions that
// take several always do.
const longLayers = 84

// keyOf names a workload: those that get the same answer have equal names.
func keyOf(w *workload.Workload) string {
	at := *w
	at.ID = ""
	data, err := json.Marshal(&at)
	if err != nil {
		panic(err) // it came from JSON
	}
	return string(data)
}

// Question is what is asked of a workload.
type Question struct {
	Workload runnable        `json:"workload"`
	Engine   evidence.Engine `json:"engine,omitempty" enum:"auto,predicted,emulated,measured" default:"auto" doc:"auto measures where a worker has the card, else predicts what is modelled, and emulates the rest where a worker can"`
	analysis.Question
}

// request makes a request of a question.
func (s *Server) request(q Question) (analysis.Request, error) {
	w, card, err := s.onCard(q.Workload.workload)
	return analysis.Request{Workload: w, Card: card, Question: q.Question, Given: change.Given(q.Workload.keys)}, err
}

// predictedOperation makes an operation of what answers a question from predictions. It has
// a name, under which answers are kept.
func predictedOperation[T any](s *Server, name string, do func(analysis.Request) (T, error)) func(context.Context, *struct{ Body Question }) (*output[T], error) {
	return operation(s, func(ctx context.Context, q Question) (none T, err error) {
		r, err := s.request(q)
		if err == nil && q.Workload.problems != nil {
			err = &badRequest{q.Workload.problems}
		}
		if err != nil {
			return none, err
		}
		asked := question{key: name + " " + requestKey(r), long: true}
		return remembered(ctx, s.compute, asked, func(ctx context.Context) (T, error) {
			r.Work = workbudget.New(workbudget.PerQuestion, ctx.Err)
			value, err := do(r)
			return value, predicted(err)
		})
	})
}

// requestKey names a request: equal ones have equal names.
func requestKey(r analysis.Request) string {
	data, err := json.Marshal(r.Question)
	if err != nil {
		panic(err) // numbers
	}
	return fmt.Sprint(string(data), r.Given, keyOf(r.Workload))
}
