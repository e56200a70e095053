package predict

import (
	"memorymark/internal/allocator"
	"memorymark/internal/trace"
)

// TraceAfter is Trace as a recording begun after a number of steps would show it.
// A process that ran out of memory before that is shown whole.
func (s *Process) TraceAfter(warmup int) (*trace.Trace, error) {
	t, err := s.Trace()
	if err != nil {
		return nil, err
	}
	passes := warmup * s.program.w.Accumulate
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
	allocator.Usage
}

// PhasesAfter returns the peaks by phase over the steps after the first ones,
// in the order of a step, whether they fit or not.
func (s *Process) PhasesAfter(warmup int) ([]Phase, error) {
	usage, err := s.spanUsage()
	if err != nil {
		return nil, err
	}
	var out []Phase
	first := append([]int{s.program.inputEvents}, s.program.stepEnds...)[warmup]
	for i, sp := range s.program.spans {
		if name := marks[sp.phase]; i < len(usage) && sp.from >= first && name != "" {
			out = addPhase(out, name, usage[i])
		}
	}
	return out, nil
}

// spanUsage is the usage of every span: under the limit, which makes the
// allocator return what it has cached, or without one if that is too low.
func (s *Process) spanUsage() ([]allocator.Usage, error) {
	ends := make([]int, len(s.program.spans))
	for i := range ends {
		ends[i] = s.program.endOf(s.program.spans, i)
	}
	limit := s.Limit
	if !s.Fits() {
		limit = noLimit
	}
	out, err := allocator.Play(s.program.requests(), s.options(limit), ends)
	if err != nil {
		return nil, err
	}
	return out.Parts, nil
}

// addPhase takes the higher peaks of a phase that runs several times.
func addPhase(phases []Phase, name string, u allocator.Usage) []Phase {
	for i := range phases {
		if p := &phases[i]; p.Name == name {
			end := u.EndAllocated
			p.Usage = p.Max(u)
			p.EndAllocated = end
			return phases
		}
	}
	return append(phases, Phase{name, u})
}
