package predict

import (
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/trace"
)

// Trace returns the process as a recording would show it: with addresses, the
// allocator's traffic with the driver, and stacks. The stacks are short, since
// no Python ran: they name the part of the step, in frames by which readers of
// recordings tell the parts apart; as in recordings, backward has none.
func (s *Simulation) Trace() *trace.Trace {
	p := s.Process
	t := *p.Trace()
	t.Tables = trace.NewTables()
	t.Events = slices.Clone(t.Events)
	lives := p.lives()
	for i, sp := range p.spans {
		end := len(t.Events)
		if i+1 < len(p.spans) {
			end = p.spans[i+1].from
		}
		stack := p.stackOf(t.Stacks, sp)
		for j := sp.from; j < end; j++ {
			e := &t.Events[j]
			e.Stack = stack
			if e.Action == trace.Alloc {
				e.For = p.cause(&lives[e.ID])
			}
		}
	}
	placed, _ := allocator.Place(&t, s.options(s.Limit))
	return placed
}

// stackOf returns the stack of a span, innermost frame first.
func (p *Process) stackOf(stacks *trace.Stacks, s span) trace.StackID {
	model := p.w.Config.Architecture
	var frames []trace.Frame
	switch s.phase {
	case building:
		frames = []trace.Frame{{File: "predicted", Name: "__init__"}, {File: "predicted", Name: model}}
	case feeding:
		frames = []trace.Frame{{File: "predicted", Name: "batch"}}
	case forward:
		frames = []trace.Frame{
			{File: "predicted", Name: model + ".forward"}, {File: "torch/nn/modules/module.py", Name: "_call_impl"}, {File: "predicted", Name: "step"},
		}
	case updating:
		frames = []trace.Frame{{File: "torch/optim/optimizer.py", Name: "step"}, {File: "predicted", Name: "step"}}
	case clearing:
		frames = []trace.Frame{{File: "torch/optim/optimizer.py", Name: "zero_grad"}, {File: "predicted", Name: "step"}}
	case backward:
		return 0
	}
	ids := make([]trace.FrameID, len(frames))
	for i, f := range frames {
		ids[i] = stacks.AddFrame(f)
	}
	return stacks.Add(ids)
}
