package predict

import (
	"memorymark/internal/allocator"
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// SimulateSteps runs a number of steps, at least one, under the workload's
// limit, or under what the card has. A nil effort is without bound.
func SimulateSteps(w *workload.Workload, card *gpu.Card, n int, e *effort.Effort) (s *Simulation, err error) {
	defer recovered(w, &err)
	p, err := run(w, false, deviceOf(card), n, e)
	if err != nil {
		return nil, err
	}
	return NewRunner(w, card).Within(e).simulate(p)
}

// TraceAfter is Trace as a recording begun after so many steps would show it.
// A process that ran out of memory before that is shown whole.
func (s *Simulation) TraceAfter(warmup int) (*trace.Trace, error) {
	t, err := s.Trace()
	if err != nil {
		return nil, err
	}
	passes := warmup * s.Process.w.Accumulate
	for _, m := range t.Marks {
		if m.Name != trace.ForwardMark || m.End {
			continue
		}
		if passes == 0 {
			return t.Since(m.Event), nil
		}
		passes--
	}
	return t, nil
}

// Phase is what the allocator's statistics say of a part of the step.
type Phase struct {
	Name string // a mark of package trace
	Step
}

// PhasesAfter returns the peaks by phase over the steps after the first ones,
// in the order of a step, whether they fit or not.
func (s *Simulation) PhasesAfter(warmup int) ([]Phase, error) {
	stages, err := s.spanStages()
	if err != nil {
		return nil, err
	}
	var out []Phase
	first := append([]int{s.Process.InputEvents}, s.Process.Steps...)[warmup]
	for i, stage := range stages {
		sp := s.Process.spans[i]
		if name := marks[sp.phase]; sp.from >= first && name != "" {
			out = addPhase(out, name, newStep(stage))
		}
	}
	return out, nil
}

// spanStages are the statistics of every span: under the limit, which makes the
// allocator let go of what it has cached, or as if there were none if that is
// too low.
func (s *Simulation) spanStages() ([]allocator.Stage, error) {
	ends := make([]int, len(s.Process.spans))
	for i := range ends {
		ends[i] = s.Process.events()
		if i+1 < len(ends) {
			ends[i] = s.Process.spans[i+1].from
		}
	}
	limit := s.Limit
	if !s.Fits() {
		limit = noLimit
	}
	course, err := allocator.Play(s.Process.Trace(), s.options(limit), ends)
	if err != nil {
		return nil, err
	}
	return course.Stages, nil
}

// addPhase takes the higher peaks of a phase that runs several times.
func addPhase(phases []Phase, name string, st Step) []Phase {
	for i := range phases {
		if p := &phases[i]; p.Name == name {
			p.Step = Step{
				PeakRequested: max(p.PeakRequested, st.PeakRequested), PeakAllocated: max(p.PeakAllocated, st.PeakAllocated),
				PeakReserved: max(p.PeakReserved, st.PeakReserved), EndAllocated: st.EndAllocated,
			}
			return phases
		}
	}
	return append(phases, Phase{name, st})
}
