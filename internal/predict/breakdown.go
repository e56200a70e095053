package predict

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"memorymark/internal/allocator"

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
func (p *program) begin(ph phase) {
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
func (p *program) causesAt(event int) Breakdown {
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
func RecordedBreakdown(t *trace.Trace, lifetimes []trace.Lifetime, steps []allocator.Usage, context bytesize.Bytes) Breakdown {
	var b Breakdown
	peak := t.Peak()
	for i := range lifetimes {
		if l := &lifetimes[i]; l.LiveAt(peak.Event) {
			b.add(l.For, l.Size)
		}
	}
	of := PeakOf(steps)
	b.Rounding = max(of.PeakAllocated-bytesize.Bytes(peak.Bytes), 0)
	b.Fragmentation = of.PeakReserved - b.Rounding - bytesize.Bytes(peak.Bytes)
	b.Context = context
	b.Total = of.PeakReserved + context
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
func (p *program) lives() []life {
	if p.allLives == nil {
		p.allLives = p.findLives()
	}
	return p.allLives
}

// unusedLives are what allocations were in that are not used any more.
var unusedLives = sync.Pool{New: func() any { return new([]life) }}

// discard returns the memory of a program that has ended for reuse by others.
func (p *program) discard() {
	p.t.Forget()
	p.discardLives()
}

func (p *program) discardLives() {
	if unused := p.allLives; unused != nil {
		unusedLives.Put(&unused)
	}
	p.allLives = nil
}

func (p *program) findLives() []life {
	events := p.requests().Events
	out := slices.Grow((*unusedLives.Get().(*[]life))[:0], len(events)/3+1)
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
func (p *program) cause(l *life) trace.Category {
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
func (p *program) phaseAt(event int) string {
	at, _ := p.spanOf(event)
	return marks[at]
}

// spanOf returns the phase of an event and the event at which the span ends.
func (p *program) spanOf(event int) (phase, int) {
	end := len(p.requests().Events) + 1
	for i := len(p.spans) - 1; i >= 0; i-- {
		if s := p.spans[i]; s.from <= event {
			return s.phase, end
		}
		end = p.spans[i].from
	}
	return building, end
}

// ModuleBytes is what a module of the model holds: its parameters, their
// gradients and optimizer state, and what its forward and backward made.
type ModuleBytes struct {
	Module string         `json:"module"`
	Bytes  bytesize.Bytes `json:"bytes"`
}

// modulesAt adds up what is live once an event has happened, by module.
func (p *program) modulesAt(event int) []ModuleBytes {
	byStack := make([]bytesize.Bytes, p.requests().Stacks.Len())
	for _, l := range p.lives() {
		if int(l.born) <= event && int(l.died) > event {
			byStack[l.module] += bytesize.Bytes(l.size)
		}
	}
	var out []ModuleBytes
	index := make(map[string]int)
	for id, bytes := range byStack {
		frames := p.requests().Stacks.Frames(trace.StackID(id))
		if len(frames) == 0 || bytes == 0 {
			continue
		}
		name := breakdownModule(frames[0].Name)
		i, ok := index[name]
		if !ok {
			i = len(out)
			index[name] = i
			out = append(out, ModuleBytes{Module: name})
		}
		out[i].Bytes += bytes
	}
	// Equals stay in the order in which forward calls them.
	slices.SortStableFunc(out, func(a, b ModuleBytes) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// breakdownModule is the module under which a breakdown counts a path: the
// layer that it is in, as "transformer.h.3" for "transformer.h.3.attn".
func breakdownModule(path string) string {
	if list, n, ok := trace.Layer(path); ok {
		return list + "." + strconv.Itoa(n)
	}
	return path
}
