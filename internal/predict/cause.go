package predict

import (
	"slices"
	"sync"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// phase is what a process is doing.
type phase uint8

const (
	building phase = iota // the model
	feeding               // the batch
	forward
	backward
	updating // the optimizer
	clearing // it drops gradients
	looping  // the loop that runs the others drops what it holds
)

// span is a run of events in one phase.
type span struct {
	phase phase
	from  int // its first event
}

// marks are the names by which a trace knows the phases of a step.
var marks = map[phase]string{
	forward: trace.ForwardMark, backward: trace.BackwardMark, updating: trace.OptimizerMark, clearing: trace.OptimizerMark,
}

// begin begins a phase, and its mark if it has one that is not yet begun.
func (p *Process) begin(ph phase) {
	p.countPart()
	p.spans = append(p.spans, span{ph, p.events()})
	if p.open == marks[ph] {
		return
	}
	if p.open != "" {
		p.t.Mark(p.open, true)
	}
	if p.open = marks[ph]; p.open != "" {
		p.t.Mark(p.open, false)
	}
}

// Breakdown is where the memory goes at the moment at which the most is
// allocated. Its parts add up to Total: what the card must have.
type Breakdown struct {
	Parameters     bytesize.Bytes `json:"parameters"` // and buffers of the model
	Gradients      bytesize.Bytes `json:"gradients"`  // of parameters
	OptimizerState bytesize.Bytes `json:"optimizer_state"`
	Activations    bytesize.Bytes `json:"activations"` // made in forward, needed in backward
	Temporaries    bytesize.Bytes `json:"temporaries"` // freed in the phase that made them
	Workspaces     bytesize.Bytes `json:"workspaces"`  // scratch that libraries keep
	Input          bytesize.Bytes `json:"input"`       // the batch
	// Rounding is what blocks have more than was asked for; Fragmentation what
	// the allocator holds from the driver, at most, more than is allocated.
	Rounding      bytesize.Bytes `json:"rounding"`
	Fragmentation bytesize.Bytes `json:"fragmentation"`
	// Context is what CUDA and its libraries take outside the allocator.
	Context bytesize.Bytes `json:"context"`
	Total   bytesize.Bytes `json:"total"`
}

// Part is a line of a breakdown.
type Part struct {
	Name  string
	Bytes bytesize.Bytes
}

// Parts lists the breakdown, what lives longest first.
func (b *Breakdown) Parts() []Part {
	return []Part{
		{"parameters", b.Parameters},
		{"optimizer state", b.OptimizerState},
		{"gradients", b.Gradients},
		{"activations", b.Activations},
		{"temporaries", b.Temporaries},
		{"input", b.Input},
		{"workspaces", b.Workspaces},
		{"rounding", b.Rounding},
		{"fragmentation", b.Fragmentation},
		{"context", b.Context},
	}
}

// causesAt adds up what is live once an event has happened, by cause.
func (p *Process) causesAt(event int) Breakdown {
	var b Breakdown
	lifetimes := p.lives()
	for i := range lifetimes {
		l := &lifetimes[i]
		if int(l.born) > event || int(l.died) <= event {
			continue
		}
		b.add(p.cause(l), l.size)
	}
	return b
}

func (b *Breakdown) add(cause trace.Category, size int64) {
	part := &b.Temporaries
	switch cause {
	case trace.Parameter:
		part = &b.Parameters
	case trace.Gradient:
		part = &b.Gradients
	case trace.OptimizerState:
		part = &b.OptimizerState
	case trace.Activation:
		part = &b.Activations
	case trace.Workspace:
		part = &b.Workspaces
	case trace.Input:
		part = &b.Input
	default:
	}
	*part += bytesize.Bytes(size)
}

// RecordedBreakdown is where the memory of a recorded process goes at its peak,
// given what its allocations are for and the peaks that its allocator counted.
func RecordedBreakdown(t *trace.Trace, lifetimes []trace.Lifetime, steps []Step, context bytesize.Bytes) Breakdown {
	var b Breakdown
	peak := t.Peak()
	for i := range lifetimes {
		if l := &lifetimes[i]; l.LiveAt(peak.Event) {
			b.add(l.For, l.Size)
		}
	}
	var most Step
	for _, s := range steps {
		most.PeakAllocated = max(most.PeakAllocated, s.PeakAllocated)
		most.PeakReserved = max(most.PeakReserved, s.PeakReserved)
	}
	b.Rounding = max(most.PeakAllocated-bytesize.Bytes(peak.Bytes), 0)
	b.Fragmentation = most.PeakReserved - b.Rounding - bytesize.Bytes(peak.Bytes)
	b.Context = context
	b.Total = most.PeakReserved + context
	return b
}

// life is an allocation.
type life struct {
	size       int64
	born, died int32 // events; died is the number of events if it never does
	cause      trace.Category
	module     trace.StackID // whose doing it is
}

// lives returns the allocations of the process by ID.
func (p *Process) lives() []life {
	if p.allLives == nil {
		p.allLives = p.findLives()
	}
	return p.allLives
}

// lifeRooms are what allocations were in that nobody looks at any more.
var lifeRooms = sync.Pool{New: func() any { return new([]life) }}

// forget gives up the trace of a process that has ended, and what was found in
// it.
func (p *Process) forget() {
	p.t.Forget()
	p.forgetLives()
}

func (p *Process) forgetLives() {
	if room := p.allLives; room != nil {
		lifeRooms.Put(&room)
	}
	p.allLives = nil
}

func (p *Process) findLives() []life {
	events := p.Trace().Events
	out := slices.Grow((*lifeRooms.Get().(*[]life))[:0], len(events)/3+1)
	for i := range events {
		switch e := &events[i]; e.Action {
		case trace.Alloc:
			out = append(out, life{size: e.Size, born: int32(i), died: int32(len(events)), cause: e.For, module: e.Stack})
		case trace.FreeRequested:
			out[e.ID].died = int32(i)
		default:
		}
	}
	return out
}

// cause says what an allocation is for: what the operator said when it made
// it, else what its phase and its end tell.
func (p *Process) cause(l *life) trace.Category {
	if l.cause != trace.Unknown {
		return l.cause
	}
	at, end := p.spanOf(int(l.born))
	if int(l.died) < end {
		return trace.Temporary
	}
	switch at {
	case building, feeding:
		return trace.Parameter
	case forward:
		return trace.Activation
	case backward:
		return trace.Gradient
	default:
		return trace.OptimizerState
	}
}

// phaseAt is the part of a step that an event is in, by its mark; "" outside.
func (p *Process) phaseAt(event int) string {
	at, _ := p.spanOf(event)
	return marks[at]
}

// spanOf returns the phase of an event and the event at which the span ends.
func (p *Process) spanOf(event int) (phase, int) {
	end := len(p.Trace().Events) + 1
	for i := len(p.spans) - 1; i >= 0; i-- {
		if s := p.spans[i]; s.from <= event {
			return s.phase, end
		}
		end = p.spans[i].from
	}
	return building, end
}
