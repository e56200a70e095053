package predict

import (
	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// steps is the number of steps of a prediction: the first one makes the
// optimizer's state, the second one runs with it, and the third shows that
// nothing grows any more.
const steps = 3

// noLimit is more than any card has, and little enough to add to.
const noLimit = 1 << 62

// stepPart is the part of an outcome that is the first step; the parts before it
// are the model and the batch.
const stepPart = 2

// Process is a workload in training on a card.
type Process struct {
	Limit   bytesize.Bytes // of what the allocator may reserve
	card    *gpu.Card
	program *program
	sizes   []int64            // of scratch memory on this card, nil where the program ran for it alone
	outcome *allocator.Outcome // under the limit
	// unlimited is the outcome, or what it would have been without a limit if it did
	// not fit.
	unlimited *allocator.Outcome
	late      *Process // the other end of a race (Late); nil where there is none, or this process does not fit
	batches   *Batches // runs the same workload at other batches
}

// newProcess runs the allocations of a program under a limit, and without one where
// that does not fit.
func (b *Batches) newProcess(p *program, limit bytesize.Bytes) (s *Process, err error) {
	s = &Process{program: p, card: b.card, Limit: limit, batches: b}
	if s.outcome, err = s.play(limit); err != nil {
		return nil, err
	}
	if s.unlimited = s.outcome; !s.Fits() {
		s.unlimited, err = s.play(noLimit)
	}
	return s, err
}

func (s *Process) play(limit bytesize.Bytes) (*allocator.Outcome, error) {
	if s.sizes != nil {
		s.program.t.SetSizes(s.sizes)
	}
	opts := s.options(limit)
	if s.program.alike > 0 {
		opts.Repeats = stepPart + s.program.alike
	}
	return allocator.Play(s.program.requests(), opts, s.program.partEnds())
}

func (s *Process) options(limit bytesize.Bytes) allocator.Options {
	w := s.program.w
	return allocator.Options{
		Settings: trace.Settings{ExpandableSegments: w.ExpandableSegments},
		Limit:    int64(limit),
		Budget:   s.batches.options.Budget,
		NCCL:     beginsWithNCCL(w.Parallel),
	}
}

// Requests are the allocations and frees of the program, in order and without
// addresses.
func (s *Process) Requests() *trace.Trace { return s.program.requests() }

// Fits reports whether every request was met, in either end of a race.
func (s *Process) Fits() bool { return s.outcome.Fits() && (s.late == nil || s.late.Fits()) }

// OutOfMemory is the request that failed, nil if none did.
func (s *Process) OutOfMemory() *OutOfMemory {
	failed := s.outcome.Failed
	if failed == nil && s.late != nil {
		return s.late.OutOfMemory()
	}
	if failed == nil {
		return nil
	}
	return &OutOfMemory{
		Step: max(len(s.outcome.Parts)-stepPart, 0), Phase: s.program.phaseAt(s.outcome.Events), Requested: bytesize.Bytes(failed.Requested),
		Allocated: bytesize.Bytes(failed.Allocated), Reserved: bytesize.Bytes(failed.Reserved), Limit: s.Limit,
	}
}

// Steps are the steps, whether they fit or not.
func (s *Process) Steps() []allocator.Usage {
	return s.unlimited.Parts[min(stepPart, len(s.unlimited.Parts)):]
}

// Peak is the maximum of each kind over all steps, whether they fit or not.
func (s *Process) Peak() allocator.Usage { return PeakOf(s.Steps()) }

// PeakOf is the maximum of each kind over some steps.
func PeakOf(steps []allocator.Usage) allocator.Usage {
	var peak allocator.Usage
	for _, u := range steps {
		peak = peak.Max(u)
	}
	return peak
}

// reserved is the peak of reserved memory, in either end of a race.
func (s *Process) reserved() bytesize.Bytes {
	reserved := s.Peak().PeakReserved
	if s.late != nil {
		reserved = max(reserved, s.late.Peak().PeakReserved)
	}
	return reserved
}

// Left is what a process leaves of the limit, in the worse end of a race.
func (s *Process) Left() bytesize.Bytes { return s.Limit - s.reserved() }

// Verdict is that on a process, in either end of a race.
func (s *Process) Verdict(margin bytesize.Bytes) Verdict {
	return VerdictOf(s.Fits(), s.reserved(), s.Limit, margin)
}

// PeakPhase is the part of the step that has the peak, whether it fits or not:
// forward, backward or optimizer.
func (s *Process) PeakPhase() string { return s.program.phaseAt(s.unlimited.PeakEvent) }

// Parameters is the number of elements of the model's parameters.
func (s *Process) Parameters() int64 { return s.program.parameters }

// Breakdown is where the memory goes at the peak, whether it fits or not.
func (s *Process) Breakdown() Breakdown {
	out := s.unlimited
	b := s.program.causesAt(out.PeakEvent)
	b.Rounding = out.PeakAllocated - out.PeakRequested
	b.Fragmentation = out.PeakReserved() - out.PeakAllocated
	b.Context = s.card.Context.Bytes
	b.Total = out.PeakReserved() + b.Context
	return b
}

// StepSeconds estimates how long a step takes once the process has settled, with
// what its GPU waits for others.
func (s *Process) StepSeconds() float64 { return s.stepTime().Total() }

// stepTime is that with the range in which it lies.
func (s *Process) stepTime() Seconds {
	w := s.program.w
	return s.program.stepTiming().Seconds(s.card, w.Parallel, int64(w.Accumulate))
}

// Prediction is the process as an answer.
func (s *Process) Prediction() (*Prediction, error) {
	w := *s.program.w
	w.GPU = s.card.ID // named or not
	out := &Prediction{
		ID: w.ID, Engine: evidence.Predicted, Fits: s.Fits(), OutOfMemory: s.OutOfMemory(), Steps: s.Steps(), Parameters: s.Parameters(),
		ModelAllocated: s.unlimited.Parts[0].EndAllocated, Breakdown: s.Breakdown(), PeakPhase: s.PeakPhase(),
		Modules:  s.program.modulesAt(s.unlimited.PeakEvent),
		Workload: &w, GPU: s.card.ID, GPUTotal: s.card.Memory.Bytes, Limit: s.Limit, Card: s.card,
		Caveats: Caveats(&w, s.card), Accuracy: AccuracyOf(&w),
	}
	var err error
	if out.MemoryLine, err = s.batches.MemoryLine(w.Batch); err != nil {
		return nil, err
	}
	var failed *OutOfMemory
	if out.Ranks, failed, err = s.ranks(); err != nil {
		return nil, err
	}
	if out.Fits && failed != nil {
		out.Fits, out.OutOfMemory = false, failed
	}
	if out.Fits {
		s.addTime(out)
		out.SamplesPerSecond = float64(w.Batch*int64(w.Accumulate)) / out.StepSeconds
		if w.Program == nil && !w.TakesImages() {
			out.TokensPerSecond = out.SamplesPerSecond * w.MeanTokens()
		}
	}
	if out.Lengths, err = s.lengthRange(out.Steps); err != nil {
		return nil, err
	}
	if out.Late, err = s.latePeaks(); err != nil {
		return nil, err
	}
	out.Judge()
	return out, nil
}

// LoopPeak is what the same steps take in another training loop.
type LoopPeak struct {
	Loop         workload.LoopName
	PeakReserved bytesize.Bytes
	Fits         bool
}

// OtherLoops runs the same steps in the loops that the workload is not for, none
// where loops do not matter or are not known.
func (s *Process) OtherLoops() ([]LoopPeak, error) {
	var out []LoopPeak
	for _, w := range s.program.w.OtherLoops() {
		other, err := Run(w, s.card, Options{Budget: s.batches.options.Budget})
		if err != nil {
			return nil, err
		}
		out = append(out, LoopPeak{w.Loop.Name, other.Peak().PeakReserved, other.Fits()})
	}
	return out, nil
}
