package analysis

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

// AutoDevice is the best device that PyTorch finds.
const AutoDevice = "auto"

// RunnerOptions are how a runner measures.
type RunnerOptions struct {
	Python     string        // that has PyTorch; "" looks for one when it is needed
	Device     string        // cuda, cuda:1, mps, cpu or AutoDevice; "" if nothing is measured here
	Timeout    time.Duration // of a probe; 0 is measure.DefaultTimeout
	Transcript io.Writer     // gets every line to and from PyTorch; may be nil

	Importing  func(python string) // called before PyTorch is imported; may be nil
	Predicting func(why error)     // called where Auto finds that nothing can be measured; may be nil

	// Upload keeps a recording of what was found for an order, and returns its
	// id. It may be nil.
	Upload func(ctx context.Context, path string) (id string, err error)
}

// Runner answers questions on this machine: from predictions, or with real
// steps. It owns the PyTorch session in which those run: opened when it is
// first needed, kept for the next question, and closed by Close.
//
// Its methods may be called from several goroutines. Steps run for one of them
// at a time: two would take each other's memory.
type Runner struct {
	RunnerOptions

	naming  sync.Once
	name    string // of this machine's card, as its driver has it
	hasCard bool

	turn    chan struct{}    // holds what is below
	session *measure.Session // nil if none is open
	unable  error            // why Auto predicts from now on
}

// NewRunner returns a runner. It opens nothing yet.
func NewRunner(o RunnerOptions) *Runner {
	return &Runner{RunnerOptions: o, turn: make(chan struct{}, 1)}
}

// ErrNoGPU says that AutoDevice found none that is worth measuring on.
var ErrNoGPU = errors.New("PyTorch finds no GPU")

// UnableError says why nothing can be measured here.
type UnableError struct{ Err error }

func (e *UnableError) Error() string { return e.Err.Error() }

func (e *UnableError) Unwrap() error { return e.Err }

// Answer answers a question. The measurement's session and what is predicted
// ahead of it are for the runner to fill in.
func (r *Runner) Answer(ctx context.Context, engine evidence.Engine, q Request, m Measurement) (a *Answer, err error) {
	if !r.wouldMeasure(ctx, engine, q.Workload, q.Card, m.User) {
		return Predict(q)
	}
	spares := 0
	if m.User == nil {
		m.Ahead, spares = LookAhead(q), Spares(q)
	}
	err = r.measure(ctx, engine, q.Workload, m, spares, func(m Measurement) error {
		a, err = Measure(ctx, q, m)
		return err
	})
	if errors.Is(err, errPredict) {
		return Predict(q)
	}
	return a, err
}

// Check runs a check on a workload or a user's own model.
func (r *Runner) Check(ctx context.Context, w *workload.Workload, m Measurement, check func(Measurement) error) error {
	return r.measure(ctx, evidence.Measured, w, m, 0, check)
}

// Profiler returns who profiles the cells of a study, of which one is given:
// this machine's device, or a prediction.
func (r *Runner) Profiler(ctx context.Context, engine evidence.Engine, first study.Cell) (study.Profiler, error) {
	if !r.wouldMeasure(ctx, engine, first.Workload, first.Card, nil) {
		return study.Predictor{}, nil
	}
	p := &Profiler{}
	err := r.measure(ctx, engine, first.Workload, Measurement{}, 0, func(m Measurement) error {
		p.Session = m.Session
		return nil
	})
	if errors.Is(err, errPredict) {
		return study.Predictor{}, nil
	}
	return p, err
}

// Close closes the session, when what runs in it has ended. The runner may be
// used again.
func (r *Runner) Close() error {
	r.turn <- struct{}{}
	defer r.pass()
	return r.closeSession()
}

func (r *Runner) closeSession() error {
	if r.session == nil {
		return nil
	}
	s := r.session
	r.session = nil
	return s.Close()
}

// wouldMeasure decides between the engines. Auto measures a user's own model,
// on a device that was named, and on this machine's card unless another one is
// asked about.
func (r *Runner) wouldMeasure(ctx context.Context, engine evidence.Engine, w *workload.Workload, card *gpu.Card, user *measure.UserModel) bool {
	switch {
	case engine != evidence.Auto:
		return engine != evidence.Predicted
	case user != nil, r.Device != AutoDevice:
		return true
	}
	r.naming.Do(func() { r.name, r.hasCard = measure.CardName(ctx) })
	if !r.hasCard || w.GPU == "" {
		return r.hasCard
	}
	here, err := gpu.Find(r.name)
	return err == nil && here.ID == card.ID
}

// errPredict says that Auto predicts after all.
var errPredict = errors.New("nothing can be measured")

// measure runs something in the session when it is its turn.
func (r *Runner) measure(ctx context.Context, engine evidence.Engine, w *workload.Workload, m Measurement, spares int, do func(Measurement) error) error {
	select {
	case r.turn <- struct{}{}:
		defer r.pass()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	mayPredict := engine == evidence.Auto && r.Device == AutoDevice && m.User == nil
	if mayPredict && r.unable != nil {
		return errPredict
	}
	err := r.prepare(ctx, w, m.User, spares)
	switch {
	case err == nil:
		m.Session = r.session
		return do(m)
	case ctx.Err() != nil:
		return ctx.Err()
	case mayPredict && r.session == nil:
		r.unable = err
		if r.Predicting != nil {
			r.Predicting(err)
		}
		return errPredict
	default:
		return &UnableError{err}
	}
}

func (r *Runner) pass() { <-r.turn }

// prepare sees to it that a session is open and has imported what a model
// needs.
func (r *Runner) prepare(ctx context.Context, w *workload.Workload, user *measure.UserModel, spares int) error {
	if r.session != nil && r.session.Err() != nil {
		_ = r.closeSession() // it ended by itself
	}
	if r.session != nil {
		return r.session.Prepare(ctx, w, user)
	}
	python, err := measure.FindPython(r.Python, os.Getenv)
	if err != nil {
		return err
	}
	if r.Importing != nil {
		r.Importing(python.Path)
	}
	s, err := measure.Start(ctx, measure.Options{
		Python: python, Device: r.Device, Timeout: r.Timeout, Workload: w, User: user, Spares: spares, Transcript: r.Transcript,
	})
	if err != nil {
		return err
	}
	if r.Device == AutoDevice && s.Device.Type == "cpu" {
		return errors.Join(ErrNoGPU, s.Close())
	}
	r.session = s
	return nil
}
