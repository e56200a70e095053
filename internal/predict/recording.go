package predict

import (
	"fmt"
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/figure"
	"memorymark/internal/trace"
)

// Trace returns the process as a recording would show it: with addresses, the
// allocator's traffic with the driver, and stacks. The stacks are short, since
// no Python ran: the module of the model, and the part of the step, in frames
// by which readers of recordings tell the parts apart.
func (s *Process) Trace() (*trace.Trace, error) {
	p := s.program
	if n := p.requests().EventsWithin(0, p.events()); n > maxRecorded {
		return nil, fmt.Errorf("a recording of all %d passes of its steps would have %s events; accumulate fewer", p.w.Accumulate, figure.Count(n))
	}
	t := *p.requests()
	t.Tables = trace.NewTables()
	t.Events = slices.Clone(t.Events)
	lives := p.lives()
	stacks := recordedStacks{from: p.requests().Stacks, to: t.Stacks, made: make(map[[2]trace.StackID]trace.StackID)}
	for i, sp := range p.spans {
		end := len(t.Events)
		if i+1 < len(p.spans) {
			end = p.spans[i+1].from
		}
		part := p.stackOf(t.Stacks, sp)
		for j := sp.from; j < end; j++ {
			e := &t.Events[j]
			e.Stack = stacks.join(e.Stack, part)
			if e.Action == trace.Alloc {
				e.For = p.cause(&lives[e.ID])
			}
		}
	}
	placed, _, err := allocator.Place(&t, s.options(s.Limit))
	if err != nil {
		return nil, err
	}
	s.setTimes(placed)
	return placed, nil
}

// maxRecorded is how many events a recording may have, some hundred megabytes.
const maxRecorded = 4 << 20

// setTimes spreads the events evenly, so that a step lasts as long as it is
// predicted to. Files place marks by their times.
func (s *Process) setTimes(t *trace.Trace) {
	last := len(s.program.stepEnds) - 1
	events := s.program.requests().EventsWithin(append([]int{s.program.inputEvents}, s.program.stepEnds...)[last], s.program.stepEnds[last])
	gap := max(int64(1e6*s.StepSeconds()/float64(max(events, 1))), 1)
	for i := range t.Events {
		t.Events[i].Time = int64(i+1) * gap
	}
	for i := range t.Marks {
		t.Marks[i].Time = int64(t.Marks[i].Event+1) * gap
	}
}

// recordedStacks puts the frames of modules upon those of parts of a step.
type recordedStacks struct {
	from, to *trace.Stacks // of the process, and of the recording
	made     map[[2]trace.StackID]trace.StackID
}

func (r *recordedStacks) join(module, part trace.StackID) trace.StackID {
	if module == 0 {
		return part
	}
	key := [2]trace.StackID{module, part}
	if id, ok := r.made[key]; ok {
		return id
	}
	var ids []trace.FrameID
	for _, f := range r.from.Frames(module) {
		ids = append(ids, r.to.AddFrame(f))
	}
	r.made[key] = r.to.Add(append(ids, r.to.IDs(part)...))
	return r.made[key]
}

// stackOf returns the stack of a part of a step, innermost frame first.
func (p *program) stackOf(stacks *trace.Stacks, s span) trace.StackID {
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
	case looping:
		frames = []trace.Frame{{File: "predicted", Name: "step"}}
	case updating:
		frames = []trace.Frame{{File: "torch/optim/optimizer.py", Name: "step"}, {File: "predicted", Name: "step"}}
	case clearing:
		frames = []trace.Frame{{File: "torch/optim/optimizer.py", Name: "zero_grad"}, {File: "predicted", Name: "step"}}
	case backward:
		frames = []trace.Frame{{File: "??", Name: "torch::autograd::Engine::thread_main()"}}
	}
	ids := make([]trace.FrameID, len(frames))
	for i, f := range frames {
		ids[i] = stacks.AddFrame(f)
	}
	return stacks.Add(ids)
}
