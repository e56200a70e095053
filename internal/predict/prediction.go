package predict

import (
	"errors"
	"fmt"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/invalid"
	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// Prediction is what training a workload takes on a card. It is the same answer
// on the command line, for each workload of a file, in the API and on the page,
// and the same whether it was predicted or emulated.
type Prediction struct {
	ID   string `json:"id,omitempty"`
	Fits bool   `json:"fits" doc:"whether all steps fit the limit"`
	// Verdict says besides whether they fit by enough to rely on.
	Verdict Verdict         `json:"verdict" enum:"fits,tight,does not fit" doc:"tight: all steps fit, and less than the margin is left"`
	Engine  evidence.Engine `json:"engine" enum:"predicted,emulated"`
	// OutOfMemory is set if the steps do not fit. All else then says what they
	// would take if there were more memory; of emulated steps, what they took
	// until then.
	OutOfMemory *OutOfMemory `json:"out_of_memory,omitempty"`
	Steps       []Step       `json:"steps"`
	// Late is the other way that a race may end, nil where there is none.
	Late *Late `json:"late,omitempty" doc:"what DDP takes if NCCL still holds the first buckets when they are rebuilt"`
	// Ranks are what ranks take whose parts are not of one size; the steps and all
	// else are those of rank 0.
	Ranks          []Rank         `json:"ranks,omitempty" doc:"what each kind of rank takes, where parts are uneven; absent where all ranks take the same"`
	Parameters     int64          `json:"parameters,omitempty" doc:"elements; absent where emulated, and the model does not fit"`
	ModelAllocated bytesize.Bytes `json:"model_allocated,omitempty" doc:"once the model is built; absent where it does not fit"`
	Breakdown      Breakdown      `json:"breakdown,omitzero" doc:"absent where emulated steps do not fit"`
	PeakPhase      string         `json:"peak_phase,omitempty" doc:"the part of the step that takes the most: forward, backward or optimizer"`
	// Modules are the same bytes by module of the model, the largest first;
	// what belongs to none (the batch, workspaces) is not among them.
	Modules    []ModuleBytes `json:"modules,omitempty" doc:"absent where steps were emulated"`
	MemoryLine *Line         `json:"memory_line,omitempty"`
	Lengths    *Range        `json:"lengths,omitempty" doc:"of samples of different lengths: the range of what steps take"`

	StepSeconds      float64 `json:"step_seconds,omitempty" doc:"of a step once the process has settled; absent if it does not fit"`
	SamplesPerSecond float64 `json:"samples_per_second,omitempty" doc:"absent if it does not fit"`
	TokensPerSecond  float64 `json:"tokens_per_second,omitempty" doc:"of text; absent if it does not fit"`

	Workload *workload.Workload `json:"workload"`
	GPU      string             `json:"gpu"` // its id
	GPUTotal bytesize.Bytes     `json:"gpu_total"`
	Limit    bytesize.Bytes     `json:"limit"` // the most the allocator may reserve
	Margin   bytesize.Bytes     `json:"margin" doc:"what must be left of the limit for fits: 2 % of the card, and at least 300 MiB"`
	Caveats  []string           `json:"caveats,omitempty" doc:"what the card cannot do as asked"`
	// Accuracy is how far off such predictions were, nil if that is not known.
	Accuracy *Accuracy `json:"accuracy,omitempty"`

	Card *gpu.Card `json:"-"`
}

// WithID is the prediction of an equal workload that has an id.
func (p *Prediction) WithID(id string) *Prediction {
	out, w := *p, *p.Workload
	out.ID, w.ID = id, id
	out.Workload = &w
	return &out
}

// PeakReserved is the most that the allocator reserves, or would without a
// limit.
func (p *Prediction) PeakReserved() bytesize.Bytes { return peakReserved(p.Steps) }

func peakReserved(steps []Step) bytesize.Bytes {
	var most bytesize.Bytes
	for _, s := range steps {
		most = max(most, s.PeakReserved)
	}
	return most
}

// Step is what the allocator's statistics say of a step.
type Step struct {
	PeakRequested bytesize.Bytes `json:"peak_requested"` // what tensors asked for
	PeakAllocated bytesize.Bytes `json:"peak_allocated"` // whole blocks
	PeakReserved  bytesize.Bytes `json:"peak_reserved"`  // held from the driver
	EndAllocated  bytesize.Bytes `json:"end_allocated"`
}

// OutOfMemory is a request that could not be met.
type OutOfMemory struct {
	Step      int            `json:"step"`            // 1 is the first; 0 is before the steps
	Phase     string         `json:"phase,omitempty"` // forward, backward or optimizer
	Requested bytesize.Bytes `json:"requested"`
	Allocated bytesize.Bytes `json:"allocated"` // at the time
	Reserved  bytesize.Bytes `json:"reserved"`  // at the time
	Limit     bytesize.Bytes `json:"limit"`
}

// Reason says in a sentence why it failed.
func (o *OutOfMemory) Reason() string {
	when := "before the first step"
	switch {
	case o.Step > 0 && o.Phase != "":
		when = fmt.Sprintf("in the %s of step %d", PhaseName(o.Phase), o.Step)
	case o.Step > 0:
		when = fmt.Sprintf("in step %d", o.Step)
	}
	free := o.Limit - o.Allocated
	if free < o.Requested {
		return fmt.Sprintf("%s it requests %v, but only %[4]v of %[3]v is free", when, o.Requested, o.Limit, free)
	}
	return fmt.Sprintf("%s it requests %v; %v of %v is free, but fragmented into smaller pieces", when, o.Requested, free, o.Limit)
}

// PhaseName is a part of a step in the words of a sentence.
func PhaseName(mark string) string {
	if mark == trace.OptimizerMark {
		return "optimizer step"
	}
	return mark + " pass"
}

// The versions whose memory is predicted unless a workload names others.
var (
	PyTorchVersion      = models.Reference.Torch.String()
	TransformersVersion = models.Reference.Transformers.String()
)

// steps is how many steps a prediction runs: the first one makes the
// optimizer's state, the second one runs with it, and the third shows that
// nothing grows any more.
const steps = 3

// noLimit is more than any card has, and little enough to add to.
const noLimit = 1 << 62

// Predict runs three steps of a workload on a card.
func Predict(w *workload.Workload, card *gpu.Card) (*Prediction, error) {
	return NewRunner(w, card).Predict(w.Batch)
}

// Simulation is a process on a card's allocator.
type Simulation struct {
	Process *Process
	Card    *gpu.Card
	Limit   bytesize.Bytes    // the most the allocator may reserve
	Course  *allocator.Course // stages: the model, the batch, each step
	// unlimited is the course, or what it would have been if it did not fit.
	unlimited *allocator.Course
	late      *Simulation // the other way that a race may end; nil where there is none, or this one does not fit
	runner    *Runner     // runs the same workload at other batches
}

// Simulate runs three steps under the workload's limit, or under what the card
// has.
func Simulate(w *workload.Workload, card *gpu.Card) (*Simulation, error) {
	return NewRunner(w, card).Simulate(w.Batch)
}

// ErrFault says that a prediction failed by no fault of the workload's.
var ErrFault = errors.New("this is a bug in MemoryMark; please report it")

// recovered makes an error of a panic: that of a process that was interrupted,
// and of faults, since one strange workload must not take the others, or a
// server, with it.
func recovered(w *workload.Workload, err *error) {
	switch r := recover().(type) {
	case nil:
	case torch.Interruption:
		*err = r.Err
		if unused := new(torch.UnusedError); errors.As(r.Err, &unused) {
			*err = invalid.At("parallel", unused)
		}
	default:
		*err = fmt.Errorf("predict %s: %v; %w", w.Config.Architecture, r, ErrFault)
	}
}

// Fits reports whether every request was met, whichever way a race ends.
func (s *Simulation) Fits() bool { return s.Course.Failed == nil && (s.late == nil || s.late.Fits()) }

// Prediction says what the simulation came to.
func (s *Simulation) Prediction() (*Prediction, error) {
	w := *s.Process.w
	w.GPU = s.Card.ID // named or not
	line, err := s.runner.MemoryLine(w.Batch)
	if err != nil {
		return nil, err
	}
	out := &Prediction{
		ID: w.ID, Engine: evidence.Predicted, Fits: s.Fits(), OutOfMemory: s.OutOfMemory(), Parameters: s.Parameters(),
		MemoryLine: line,
		Workload:   &w, GPU: s.Card.ID, GPUTotal: s.Card.Memory.Bytes, Limit: s.Limit, Card: s.Card,
		Caveats: Caveats(&w, s.Card),
	}
	var failed *OutOfMemory
	if out.Ranks, failed, err = s.ranks(); err != nil {
		return nil, err
	}
	if out.Fits && failed != nil {
		out.Fits, out.OutOfMemory = false, failed
	}
	if out.Fits {
		out.StepSeconds = s.StepSeconds()
		out.SamplesPerSecond = float64(w.Batch*int64(w.Accumulate)) / out.StepSeconds
		if !w.TakesImages() {
			out.TokensPerSecond = out.SamplesPerSecond * w.MeanTokens()
		}
	}
	course := s.unlimited
	out.ModelAllocated = bytesize.Bytes(course.Stages[0].EndAllocated)
	out.Steps = newSteps(course)
	if out.Lengths, err = s.lengthRange(out.Steps); err != nil {
		return nil, err
	}
	out.Breakdown = s.breakdown(course)
	out.PeakPhase = s.Process.phaseAt(course.PeakEvent)
	out.Modules = s.Process.modulesAt(course.PeakEvent)
	out.Accuracy = s.Stated().Accuracy
	if out.Late, err = s.otherWay(); err != nil {
		return nil, err
	}
	out.Judge()
	return out, nil
}

// OutOfMemory is the request that failed, nil if none did.
func (s *Simulation) OutOfMemory() *OutOfMemory {
	failed := s.Course.Failed
	if failed == nil && s.late != nil {
		return s.late.OutOfMemory()
	}
	if failed == nil {
		return nil
	}
	return &OutOfMemory{
		Step: max(len(s.Course.Stages)-stepStage, 0), Phase: s.Process.phaseAt(s.Course.Events), Requested: bytesize.Bytes(failed.Requested),
		Allocated: bytesize.Bytes(failed.Allocated), Reserved: bytesize.Bytes(failed.Reserved), Limit: s.Limit,
	}
}

// Steps are the steps, whether they fit or not.
func (s *Simulation) Steps() []Step { return newSteps(s.unlimited) }

// Breakdown is where the memory goes at the peak, whether it fits or not.
func (s *Simulation) Breakdown() Breakdown { return s.breakdown(s.unlimited) }

func (s *Simulation) breakdown(course *allocator.Course) Breakdown {
	reserved := int64(0)
	for _, st := range course.Stages {
		reserved = max(reserved, st.PeakReserved)
	}
	b := s.Process.causesAt(course.PeakEvent)
	b.Rounding = bytesize.Bytes(course.PeakAllocated - course.PeakRequested)
	b.Fragmentation = bytesize.Bytes(reserved - course.PeakAllocated)
	b.Context = s.Card.Context.Bytes
	b.Total = bytesize.Bytes(reserved) + b.Context
	return b
}

// Parameters are how many elements the parameters of the model have.
func (s *Simulation) Parameters() int64 { return s.Process.parameters }

// PeakPhase is the part of the step that takes the most, whether it fits or not:
// forward, backward or optimizer.
func (s *Simulation) PeakPhase() string { return s.Process.phaseAt(s.unlimited.PeakEvent) }

// Peak is the most of each kind over all steps, whether they fit or not.
func (s *Simulation) Peak() Step { return PeakOf(s.Steps()) }

// PeakOf is of each kind the most over some steps.
func PeakOf(steps []Step) Step {
	var peak Step
	for _, st := range steps {
		peak.PeakRequested = max(peak.PeakRequested, st.PeakRequested)
		peak.PeakAllocated = max(peak.PeakAllocated, st.PeakAllocated)
		peak.PeakReserved = max(peak.PeakReserved, st.PeakReserved)
		peak.EndAllocated = max(peak.EndAllocated, st.EndAllocated)
	}
	return peak
}

// newSteps are the steps of a course; fewer if no memory were enough.
func newSteps(course *allocator.Course) []Step {
	var out []Step
	for _, st := range course.Stages[min(stepStage, len(course.Stages)):] {
		out = append(out, newStep(st))
	}
	return out
}

func newStep(st allocator.Stage) Step {
	return Step{
		PeakRequested: bytesize.Bytes(st.PeakRequested), PeakAllocated: bytesize.Bytes(st.PeakAllocated),
		PeakReserved: bytesize.Bytes(st.PeakReserved), EndAllocated: bytesize.Bytes(st.EndAllocated),
	}
}

// stepStage is the stage of the first step.
const stepStage = 2

// simulate plays a process under the limit, and without one where that is not
// enough.
func (r *Runner) simulate(p *Process) (s *Simulation, err error) {
	s = &Simulation{Process: p, Card: r.card, Limit: Limit(r.w, r.card), runner: r}
	if s.Course, err = s.play(s.Limit); err != nil {
		return nil, err
	}
	if s.unlimited = s.Course; !s.Fits() {
		s.unlimited, err = s.play(noLimit)
	}
	return s, err
}

func (s *Simulation) play(limit bytesize.Bytes) (*allocator.Course, error) {
	opts := s.options(limit)
	if s.Process.alike > 0 {
		opts.Alike = stepStage + s.Process.alike
	}
	return allocator.Play(s.Process.Trace(), opts, s.stages())
}

// stages are where the model, the batch and each step end.
func (s *Simulation) stages() []int {
	return append([]int{s.Process.ModelEvents, s.Process.InputEvents}, s.Process.Steps...)
}

func (s *Simulation) options(limit bytesize.Bytes) allocator.Options {
	return allocator.Options{
		Settings: trace.Settings{ExpandableSegments: s.Process.w.ExpandableSegments},
		Limit:    int64(limit),
		Effort:   s.runner.effort,
		NCCL:     beginsWithNCCL(s.Process.w.Parallel),
	}
}

// Limit is the most that the allocator may reserve: the workload's limit, or
// what the card has beside the context.
func Limit(w *workload.Workload, card *gpu.Card) bytesize.Bytes {
	if limit := w.Limit(); limit > 0 {
		return limit
	}
	return card.Usable()
}

func deviceOf(c *gpu.Card) torch.Device {
	return torch.Device{
		SMs: c.SMs, ThreadsPerSM: c.ThreadsPerSM,
		Major: c.ComputeCapability.Major, Minor: c.ComputeCapability.Minor,
	}
}
