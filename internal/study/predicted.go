package study

import (
	"context"

	"memorymark/internal/evidence"
	"memorymark/internal/predict"
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Predictor profiles cells without a GPU. Its profiles depend on nothing but
// the cell, so cells can be profiled at the same time.
type Predictor struct {
	// Work is what all cells may take together; without one, each may take what
	// a question may.
	Work *workbudget.Budget
}

// settled is after how many steps a predicted process does the same for ever:
// the first step makes the optimizer's state, and the second shows it.
const settled = 2

// Engine implements Profiler.
func (Predictor) Engine() evidence.Engine { return evidence.Predicted }

// Profile implements Profiler.
func (p Predictor) Profile(ctx context.Context, c Cell) (*Profile, error) {
	warmup := min(c.Warmup, settled)
	e := p.Work
	if e == nil {
		e = workbudget.New(workbudget.PerQuestion, ctx.Err)
	}
	s, err := predict.Run(c.Workload, c.Card, predict.Options{Budget: e, Steps: warmup + c.Steps})
	if err != nil {
		return nil, err
	}
	t, err := s.TraceAfter(warmup)
	if err != nil {
		return nil, err
	}
	phases, err := s.PhasesAfter(warmup)
	if err != nil {
		return nil, err
	}
	profile := &Profile{
		Trace: t, Phases: phases,
		Provenance: Provenance{
			GPU: c.Card.Name, GPUMemory: c.Card.Memory.Bytes, PyTorch: c.Workload.Libraries().Torch.String(), Settings: settingsOf(c.Workload),
		},
	}
	profile.Provenance.Accuracy = predict.AccuracyOf(c.Workload)
	if s.Fits() { // what does not train has no speed
		profile.StepSeconds = []float64{s.StepSeconds()}
	}
	if failed := s.OutOfMemory(); failed != nil {
		profile.OutOfMemory = &OutOfMemory{
			Phase: phaseAtEnd(profile.Trace), Requested: failed.Requested, Reserved: failed.Reserved,
			Limit: s.Limit, Needs: s.Peak().PeakReserved,
		}
	}
	return profile, nil
}

func settingsOf(w *workload.Workload) string {
	s := trace.Settings{ExpandableSegments: w.ExpandableSegments}
	return s.String()
}

// phaseAtEnd is the part of the step that a trace ends in.
func phaseAtEnd(t *trace.Trace) string {
	open := ""
	for _, m := range t.Marks {
		switch {
		case !isPhase(m.Name):
		case m.End:
			open = ""
		default:
			open = m.Name
		}
	}
	return open
}

func isPhase(name string) bool {
	return name == trace.ForwardMark || name == trace.BackwardMark || name == trace.OptimizerMark
}
