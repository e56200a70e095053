package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/admission"
	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
)

// Emulate runs the steps of a request's batch on a card that is not there.
type Emulate func(context.Context, analysis.Request) (*analysis.Prediction, error)

// CannotEmulateError says why this server runs no steps, and what to do about
// it.
type CannotEmulateError struct{ Reason string }

func (e *CannotEmulateError) Error() string {
	return "this server emulates no cards: " + e.Reason + "; an analysis (POST /v1/analyses) with engine emulated waits for a worker that can"
}

// maxEmulated is how many emulations are remembered.
const maxEmulated = 256

// emulations runs one emulation at a time: each keeps the cores busy. Equal
// requests are run once. None is run for a client that left.
type emulations struct {
	run  Emulate
	gate *admission.Gate

	mu    sync.Mutex
	known *recent[*analysis.Prediction]
}

func newEmulations(run Emulate) *emulations {
	if run == nil {
		run = func(context.Context, analysis.Request) (*analysis.Prediction, error) {
			return nil, &CannotEmulateError{"it was started with --no-measuring"}
		}
	}
	return &emulations{run: run, gate: admission.New(admission.Capacity{Slots: 1, Queue: 32}), known: newRecent[*analysis.Prediction](maxEmulated)}
}

// answer emulates when it is the request's turn, unless it is known by then.
func (e *emulations) answer(ctx context.Context, r analysis.Request) (*analysis.Prediction, error) {
	key := keyOf(r.Workload)
	if p, ok := e.remembered(key); ok {
		return p, nil
	}
	release, err := e.gate.Acquire(ctx, callOf(ctx).client(), 1)
	if err != nil {
		return nil, err
	}
	defer release()
	if p, ok := e.remembered(key); ok {
		return p, nil
	}
	p, err := e.run(ctx, r)
	if err != nil {
		return nil, emulationProblem(err)
	}
	if p.Emulation != nil && p.Failure != nil {
		p.Failure.Traceback, p.Failure.Output = "", "" // which name files of this machine
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known.put(key, p, 1)
	return p, nil
}

func (e *emulations) remembered(key string) (*analysis.Prediction, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known.get(key)
}

// emulationProblem gives the error of an emulation its status: steps that fail
// by themselves are about the workload.
func emulationProblem(err error) error {
	var failed *measure.Failure
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.Class {
	case measure.Cancelled:
		return context.Canceled
	case measure.Timeout:
		return fmt.Errorf("%s: %w", failed.Summary(), context.DeadlineExceeded)
	case measure.Missing:
		return &CannotEmulateError{failed.Message}
	default:
		return bad("body", "%s: %s", failed.Summary(), failed.Message)
	}
}

// predictionInput is a workload, and who is to say what it takes.
type predictionInput struct {
	Engine evidence.Engine `query:"engine" enum:"auto,predicted,emulated" default:"auto" doc:"auto predicts what is modelled, and emulates the rest. Emulated steps are run by the server's own PyTorch, on a card that is not there: that takes seconds"`
	Body   runnable
}

func (s *Server) registerPredict(api huma.API) {
	o := post("predict", "/v1/predictions", "What a workload takes",
		"Three steps on a simulated allocator: peaks of each, and where the memory goes at the peak, by cause and by module. "+
			"An answer takes milliseconds. With engine=emulated, PyTorch runs the steps on an emulated card, which takes seconds; "+
			"the answer then names every value that was made up.", tagPredictions)
	o.Errors = append(o.Errors, http.StatusNotImplemented, http.StatusGatewayTimeout)
	huma.Register(api, o, func(ctx context.Context, in *predictionInput) (*output[analysis.Prediction], error) {
		p, err := s.predict(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return &output[analysis.Prediction]{*p}, nil
	})
}

// predict says what a workload takes, predicted or emulated.
func (s *Server) predict(ctx context.Context, in *predictionInput) (p *analysis.Prediction, err error) {
	w, card, err := s.onCard(in.Body.workload)
	if err != nil {
		return nil, err
	}
	id := w.ID
	w.ID = "" // a name does not make a workload another
	if engine.Choose(in.Engine, w, in.Body.problems == nil, engine.Means{Emulation: true}) == evidence.Emulated {
		p, err = s.emulate(ctx, analysis.Request{Workload: w, Card: card}, in.Body.problems)
	} else {
		p, err = s.simulate(ctx, w, card, in.Body.problems)
	}
	if err != nil || id == "" {
		return p, err
	}
	return p.WithID(id), nil
}

// emulate emulates what may be unknown to predictions. Where that cannot be
// done, what is wrong with such a workload says more.
func (s *Server) emulate(ctx context.Context, r analysis.Request, problems []error) (*analysis.Prediction, error) {
	callOf(ctx).endParse()
	ctx, leave := s.untilStopping(ctx)
	defer leave()
	p, err := s.emulations.answer(ctx, r)
	var cannot *CannotEmulateError
	switch {
	case errors.As(err, &cannot) && problems != nil:
		return nil, &badRequest{append(problems, &huma.ErrorDetail{Message: cannot.Error()})}
	case err != nil && errors.Is(context.Cause(ctx), errStopping):
		return nil, errStopping
	}
	return p, err
}
