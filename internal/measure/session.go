package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/models"
	"memorymark/internal/unpack"
	"memorymark/internal/workload"
)

// SessionOptions are how a session measures.
type SessionOptions struct {
	Python  Python
	Device  string        // cuda, cuda:1, mps, cpu, or auto for the best there is
	Timeout time.Duration // of each probe; 0 is DefaultTimeout
	Card    *gpu.Card     // to emulate: Device is then cuda; nil if the device is there

	Workload *workload.Workload // whose model will be probed,
	User     *UserModel         // or a user's own

	// Env is what the prober's environment has in addition to ours, as "NAME=value".
	Env []string

	// Confinement keeps the prober apart from this machine, with the user's model
	// that it imports; nil if that is trusted.
	Confinement *Confinement

	// Memory is how much of this machine's memory the prober may hold, 0 for any
	// amount. A confinement has a bound of its own.
	Memory int64

	// Spares are processes that open the device while PyTorch is imported, for
	// the first probes. Each takes a context's memory until then.
	Spares int

	// Transcript, if not nil, gets every line of the protocol: "> " before what
	// was sent, "< " before what came back.
	Transcript io.Writer

	// Hurry is closed when this process is told to end: then nothing waits for the
	// prober any more. It may be nil.
	Hurry <-chan struct{}
}

// DefaultTimeout is how long a probe may take: compiling a large model does.
const DefaultTimeout = 5 * time.Minute

// prepareTimeout is how long imports may take, from a slow disk, while other work runs.
const prepareTimeout = 10 * time.Minute

// answerGrace is how much longer than its timeout a probe may be silent: the
// prober kills it and says so, unless it hangs itself.
const answerGrace = 15 * time.Second

// Session is a prober that is ready for probes. Its methods may be
// called from several goroutines.
type Session struct {
	Device   Device
	Card     *gpu.Card // that is emulated, nil if the device is there
	Versions Versions
	// ImportSeconds is what PyTorch and the model's code took to import.
	ImportSeconds float64

	link    Link
	python  Python
	device  string // as PyTorch names it
	timeout time.Duration
	hurry   <-chan struct{}

	ready map[imports]bool // what is imported

	mu      sync.Mutex
	nextID  int64
	waiting map[int64]chan message // by request
	unread  int64                  // bytes of the messages in them
	broken  error                  // why no answer will come any more
	done    chan struct{}
}

// message is a line of the prober.
type message struct {
	header
	raw json.RawMessage
}

// Start starts a prober, has it import what the model needs, and looks at the
// device. The session must be closed.
func Start(ctx context.Context, o SessionOptions) (*Session, error) {
	p, err := o.start(ctx)
	if err != nil {
		return nil, err
	}
	var l Link = p
	if o.Transcript != nil {
		l = &transcribed{Link: p, to: o.Transcript}
	}
	return OpenLink(ctx, l, o)
}

// start starts the prober, as we are or in a sandbox.
func (o *SessionOptions) start(ctx context.Context) (*process, error) {
	if o.Confinement != nil {
		return o.Confinement.start(ctx, o)
	}
	folder, err := installProber(unpack.Cache())
	if err != nil {
		return nil, err
	}
	env, err := o.environment(ctx)
	if err != nil {
		return nil, err
	}
	return startProcess(command(o.Python, folder, env), o.Memory, countModel, o.Hurry)
}

// OpenLink greets the prober at the other end of a link and prepares it.
func OpenLink(ctx context.Context, l Link, o SessionOptions) (*Session, error) {
	s := &Session{
		Card: o.Card, link: l, python: o.Python, timeout: o.Timeout, hurry: o.Hurry, nextID: 1,
		ready: make(map[imports]bool), waiting: make(map[int64]chan message), done: make(chan struct{}),
	}
	if s.timeout == 0 {
		s.timeout = DefaultTimeout
	}
	greeting := s.expect(0)
	go s.listen()
	err := s.greet(ctx, greeting)
	if err == nil {
		err = s.prepare(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Session) greet(ctx context.Context, greeting chan message) error {
	ctx, stop := context.WithTimeoutCause(ctx, prepareTimeout, errors.New("Python did not start MemoryMark's program in time"))
	defer stop()
	var hello struct {
		Protocol int    `json:"protocol"`
		Python   string `json:"python"`
	}
	m, err := s.wait(ctx, greeting)
	if err == nil {
		err = json.Unmarshal(m.raw, &hello)
	}
	switch {
	case err != nil:
		return s.explain(fmt.Errorf("start MemoryMark's Python program: %w", err))
	case m.Type != "hello" || hello.Protocol != protocolVersion:
		return fmt.Errorf("the prober speaks protocol %d, not %d; remove %s", hello.Protocol, protocolVersion, unpack.Cache())
	}
	s.Versions.Python = hello.Python
	return nil
}

// imports is what the prober is to import for a model.
type imports struct {
	Transformers bool   `json:"transformers,omitempty"`
	ModelType    string `json:"model_type,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	Module       string `json:"module,omitempty"` // that has the architecture's class
	Auto         bool   `json:"auto,omitempty"`   // whatever class is meant
}

// importsOf is what a workload needs, or a user's own model, which imports for
// itself. Without either it is what most models need.
func importsOf(w *workload.Workload, user *UserModel) imports {
	if user != nil {
		return imports{}
	}
	if w != nil && (w.Unmodelled != "" || models.IsEvaluated(w.Config)) {
		return imports{Transformers: true, ModelType: w.Config.ModelType, Architecture: w.Config.Architecture, Auto: true}
	}
	if w != nil {
		if family, head, err := models.Find(w.Config); err == nil { // else the probe fails, and says why
			module := family.PythonModule()
			return imports{Transformers: module == models.Transformers, ModelType: family.Type, Architecture: head.Architecture, Module: module}
		}
	}
	return imports{Transformers: true}
}

// prepare imports what is needed first and looks at the device.
func (s *Session) prepare(ctx context.Context, o SessionOptions) error {
	ctx, stop := context.WithTimeoutCause(ctx, prepareTimeout, errors.New("importing PyTorch took too long"))
	defer stop()
	id, ready := s.register()
	lookID, looked := s.register()
	seconds, err := s.load(ctx, ready, request{
		Type: "prepare", ID: id, LookID: lookID, imports: importsOf(o.Workload, o.User), Spares: o.Spares, Device: o.Device, Timeout: prepareTimeout.Seconds(),
	})
	if err != nil {
		return err
	}
	s.ImportSeconds = seconds
	if err := s.receive(ctx, looked, &s.Device); err != nil {
		return s.explain(fmt.Errorf("look at the device: %w", err))
	}
	if s.device = o.Device; o.Device == "auto" {
		s.device = s.Device.Type
	}
	return nil
}

// Prepare imports what another model needs. It must not run twice at a time.
func (s *Session) Prepare(ctx context.Context, w *workload.Workload, user *UserModel) error {
	needs := importsOf(w, user)
	if s.ready[needs] {
		return nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, prepareTimeout, errors.New("importing the model's code took too long"))
	defer stop()
	id, ready := s.register()
	_, err := s.load(ctx, ready, request{Type: "prepare", ID: id, imports: needs})
	return err
}

// load has the prober import, and checks the versions that it found.
func (s *Session) load(ctx context.Context, ready chan message, r request) (seconds float64, err error) {
	if err := s.send(r); err != nil {
		return 0, s.explain(err)
	}
	var answer struct {
		Versions
		CUDA    string  `json:"cuda"` // that PyTorch was built for
		Seconds float64 `json:"seconds"`
	}
	if err := s.receive(ctx, ready, &answer); err != nil {
		return 0, missing(s.python, s.explain(err))
	}
	if err := checkVersions(s.python, answer.Versions); err != nil {
		return 0, err
	}
	if s.Card != nil && answer.CUDA == "" {
		return 0, &BuildError{Torch: answer.Torch, python: s.python}
	}
	s.ready[r.imports] = true
	s.Versions.Torch = answer.Torch
	if answer.Transformers != "" {
		s.Versions.Transformers = answer.Transformers
	}
	return answer.Seconds, nil
}

// Engine is what the session's answers rest on.
func (s *Session) Engine() evidence.Engine {
	if s.Card != nil {
		return evidence.Emulated
	}
	return evidence.Measured
}

// Timeout is how long a probe may take.
func (s *Session) Timeout() time.Duration { return s.timeout }

// Err is why no answer will come any more, nil while the prober is there.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// Probe runs steps in a fresh process and returns what they took. That a batch
// failed is part of the result; the error, a *Failure, is of the probe itself.
// progress, if not nil, is called after each measured step.
func (s *Session) Probe(ctx context.Context, p Probe, progress func(StepProgress)) (*ProbeResult, error) {
	w, err := workloadMessage(p.Workload, p.User)
	if err != nil {
		return nil, err
	}
	made, err := newRecipe(p.Workload, p.User)
	if err != nil {
		return nil, err
	}
	id, answers := s.register()
	r := request{
		Type: "probe", ID: id, Device: s.device, Timeout: s.timeout.Seconds(), Workload: w, Recipe: made, Batches: p.Batches,
		Steps: p.Steps, Warmup: p.Warmup, Timed: p.Timed, Limit: p.Limit, Compile: p.Compile, Times: p.TimesOnly, Record: p.Record,
		BuildOnce: p.User != nil && s.Card != nil,
	}
	defer s.forget(id)
	if err := s.send(r); err != nil {
		return nil, s.explain(err)
	}
	limited, stop := context.WithTimeoutCause(ctx, s.timeout+answerGrace, errors.New("MemoryMark's Python program does not answer"))
	defer stop()
	for {
		m, err := s.wait(limited, answers)
		if err != nil {
			s.cancel(id, answers)
			return nil, s.explain(err)
		}
		switch m.Type {
		case "step":
			if progress != nil {
				var step StepProgress
				if json.Unmarshal(m.raw, &step) == nil && json.Unmarshal(m.raw, &step.Done) == nil {
					if s.Card != nil {
						step.Done.Seconds = 0
					}
					progress(step)
				}
			}
		case "result", "failed":
			var result ProbeResult
			err := decode(m, &result)
			if err == nil {
				err = result.check(p)
			}
			if err != nil {
				return nil, s.explain(err)
			}
			if s.Card != nil {
				result.estimateTimes(s.Card)
			}
			return &result, nil
		case "started":
		default:
			return nil, fmt.Errorf("the prober answered a probe with %.80q", m.raw)
		}
	}
}

// Close ends the prober and everything it started.
func (s *Session) Close() error {
	err := s.link.Close()
	<-s.done
	return err
}
