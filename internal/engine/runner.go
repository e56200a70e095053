// Package engine runs what answers a question on this machine: a prediction, or real
// steps on a GPU or on an emulated card. It chooses the engine, owns the PyTorch
// sessions, searches the largest batch by trying, times steps, records them, and
// checks predictions with them. The command line, the server and the workers share it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/emulate"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/study"
	"memorymark/internal/torch"
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

	// Importing is called before PyTorch is imported, with the card if one is
	// emulated. It may be nil.
	Importing  func(python string, emulated *gpu.Card)
	Predicting func(why error) // called where Auto finds that nothing can be measured; may be nil

	// Hurry is closed when this process is told to end: then nothing waits for
	// PyTorch any more. It may be nil.
	Hurry <-chan struct{}

	// CodeMemory is how much of this machine's memory the code of an order may
	// hold; 0 if orders with code are not run here.
	CodeMemory int64

	// EmulationMemory is the same for models of configurations on emulated cards; 0 for
	// any amount.
	EmulationMemory int64

	// Upload keeps a recording of what was found for an order, and returns its
	// id. It may be nil.
	Upload func(ctx context.Context, path string) (id string, err error)
}

// Runner answers questions on this machine: from predictions, or with real
// steps, on its device or on a card that is not there. It owns the PyTorch
// sessions in which those run: opened when they are first needed, kept for the
// next question, and closed by Close.
//
// Its methods may be called from several goroutines. Steps run for one of them
// at a time: two would take each other's memory.
type Runner struct {
	RunnerOptions
	confinement *measure.Confinement // of the sessions, nil if what runs in them is trusted

	naming  sync.Once
	name    string // of this machine's card, as its driver has it
	hasCard bool

	turn     chan struct{} // holds what is below
	sessions []openSession // the one that was used last comes last
	unable   error         // why Auto predicts from now on
}

// openSession is a session on this machine's device, or on an emulated card.
type openSession struct {
	*measure.Session
	card string // that is emulated, "" if none is
}

// maxSessions are kept open: each is a process with PyTorch in it.
const maxSessions = 4

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
func (r *Runner) Answer(ctx context.Context, engine evidence.Engine, q analysis.Request, m Measurement) (a *analysis.Answer, err error) {
	engine = r.choose(ctx, engine, q, m.User)
	if engine == evidence.Predicted {
		return analysis.Predict(q)
	}
	spares := 0
	if predictable(q, m.User) {
		m.Ahead, spares = LookAhead(q), Spares(q)
	}
	if engine == evidence.Emulated && m.User == nil {
		spares = maxSpares // each has a card of its own
	}
	err = r.steps(ctx, engine, q, m, spares, func(m Measurement) error {
		a, err = Measure(ctx, q, m)
		return err
	})
	if errors.Is(err, errPredict) {
		return analysis.Predict(q)
	}
	return a, err
}

// Check runs a check on a workload or a user's own model.
func (r *Runner) Check(ctx context.Context, engine evidence.Engine, q analysis.Request, m Measurement, check func(Measurement) error) error {
	return r.steps(ctx, engine, q, m, 0, check)
}

// Profiler returns what profiles the cells of a study: this machine's device, an
// emulated card, or a prediction. The first cell decides.
func (r *Runner) Profiler(ctx context.Context, engine evidence.Engine, first study.Cell) (study.Profiler, error) {
	q := analysis.Request{Workload: first.Workload, Card: first.Card}
	engine = r.choose(ctx, engine, q, nil)
	switch engine {
	case evidence.Predicted:
		return study.Predictor{}, nil
	case evidence.Emulated:
		return &emulatingProfiler{runner: r}, nil
	default:
	}
	p := &Profiler{}
	err := r.steps(ctx, engine, q, Measurement{}, 0, func(m Measurement) error {
		p.Session = m.Session
		return nil
	})
	if errors.Is(err, errPredict) {
		return study.Predictor{}, nil
	}
	return p, err
}

// Close closes the sessions, when what runs in them has ended. The runner may
// be used again.
func (r *Runner) Close() error {
	r.turn <- struct{}{}
	defer r.pass()
	var failed error
	for _, s := range r.sessions {
		failed = errors.Join(failed, s.Close())
	}
	r.sessions = nil
	return failed
}

// take takes the session of a card out of those that are open, nil if there is
// none, or if it ended by itself.
func (r *Runner) take(card string) *measure.Session {
	i := slices.IndexFunc(r.sessions, func(s openSession) bool { return s.card == card })
	if i < 0 {
		return nil
	}
	s := r.sessions[i].Session
	r.sessions = slices.Delete(r.sessions, i, i+1)
	if s.Err() != nil {
		_ = s.Close() // it was killed if it did not end
		return nil
	}
	return s
}

// endSession ends the session of a card, if it is open.
func (r *Runner) endSession(card string) {
	if s := r.take(card); s != nil {
		_ = s.Close() // it was killed if it did not end
	}
}

// keep keeps a session open for the next question, and ends the one that was
// not used for longest if there are too many.
func (r *Runner) keep(s *measure.Session, card string) {
	if len(r.sessions) == maxSessions {
		_ = r.sessions[0].Close() // it was killed if it did not end
		r.sessions = slices.Delete(r.sessions, 0, 1)
	}
	r.sessions = append(r.sessions, openSession{s, card})
}

// choose decides between the engines. It leaves Auto where the answer is predicted
// if it turns out that nothing can be measured on this machine's card.
func (r *Runner) choose(ctx context.Context, asked evidence.Engine, q analysis.Request, user *measure.UserModel) evidence.Engine {
	named, modelled := r.Device != AutoDevice, predictable(q, user)
	has := Means{Emulation: emulate.Supported(), Device: true}
	if asked == evidence.Auto {
		has.Card = named || r.isHere(ctx, q)
	}
	engine := Choose(asked, q.Workload, modelled, has)
	if asked == evidence.Auto && engine == evidence.Measured && modelled && !named {
		return evidence.Auto
	}
	return engine
}

// predictable reports whether what a question is about is modelled.
func predictable(q analysis.Request, user *measure.UserModel) bool {
	return (user == nil || q.Workload.Program != nil) && q.Workload.Unmodelled == ""
}

// isHere reports whether a question is about this machine's card.
func (r *Runner) isHere(ctx context.Context, q analysis.Request) bool {
	r.naming.Do(func() { r.name, r.hasCard = measure.CardName(ctx) })
	if !r.hasCard || q.Workload.GPU == "" {
		return r.hasCard
	}
	here, err := gpu.Find(r.name)
	return err == nil && here.ID == q.Card.ID
}

// errPredict says that Auto predicts after all.
var errPredict = errors.New("nothing can be measured")

// steps runs something in a session when it is its turn: an emulated one, or
// one on this machine's device. Auto is that device, if it works.
func (r *Runner) steps(ctx context.Context, engine evidence.Engine, q analysis.Request, m Measurement, spares int, do func(Measurement) error) (err error) {
	select {
	case r.turn <- struct{}{}:
		defer r.pass()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	mayPredict := engine == evidence.Auto
	if mayPredict && r.unable != nil {
		return errPredict
	}
	o := measure.SessionOptions{Device: r.Device, Timeout: r.Timeout, Workload: q.Workload, User: m.User, Spares: spares, Transcript: r.Transcript, Hurry: r.Hurry, Confinement: r.confinement}
	if engine == evidence.Emulated {
		o.Device, o.Card, o.Memory = "cuda", q.Card, r.EmulationMemory
	}
	m.Session, err = r.prepare(ctx, o)
	if err == nil {
		err = otherVersions(q.Workload, m.Session.Versions)
	}
	switch {
	case err == nil:
		return do(m)
	case ctx.Err() != nil:
		return ctx.Err()
	case mayPredict && m.Session == nil:
		r.unable = err
		if r.Predicting != nil {
			r.Predicting(err)
		}
		return errPredict
	case q.Workload.Unmodelled != "":
		return &UnableError{fmt.Errorf("%s, so PyTorch must run it: %w", q.Workload.Unmodelled, err)}
	default:
		return &UnableError{err}
	}
}

// otherVersions reports a Python that has other versions than a workload names.
func otherVersions(w *workload.Workload, found measure.Versions) error {
	if w == nil || w.Versions == nil {
		return nil
	}
	want := w.Libraries()
	for _, library := range []struct {
		name, found string
		want        torch.Version
	}{{"torch", found.Torch, want.Torch}, {"transformers", found.Transformers, want.Transformers}} {
		has, err := torch.ParseVersion(library.found)
		if library.found != "" && (err != nil || has != library.want) {
			return fmt.Errorf("the workload asks for %s %v, and this Python has %s; choose one with that version by --python", library.name, library.want, library.found)
		}
	}
	return nil
}

func (r *Runner) pass() { <-r.turn }

// prepare returns a session that has imported what a model needs: one that is
// open if it is for the same card. The error may be of the imports only.
func (r *Runner) prepare(ctx context.Context, o measure.SessionOptions) (*measure.Session, error) {
	card := ""
	if o.Card != nil {
		card = o.Card.ID
	}
	if s := r.take(card); s != nil {
		r.keep(s, card)
		return s, s.Prepare(ctx, o.Workload, o.User)
	}
	var err error
	if o.Python, err = measure.FindPython(r.Python, os.Getenv); err != nil {
		return nil, err
	}
	if r.Importing != nil {
		r.Importing(o.Python.Path, o.Card)
	}
	s, err := measure.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Device == AutoDevice && s.Device.Type == "cpu" {
		return nil, errors.Join(ErrNoGPU, s.Close())
	}
	r.keep(s, card)
	return s, nil
}
