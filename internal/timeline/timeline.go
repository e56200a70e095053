// Package timeline turns a trace into the data of a picture: the stack of
// active allocations over the events, the totals above it, the peak, phases and
// failures, reduced to as many columns as there are pixels.
//
// A moment is the state after an event and is named by it; the one before the
// first event is -1. A column represents a run of moments and shows one of
// them, that with the most active memory. Everything in a column is from that
// moment: so the heights of a column add up to the active memory to the byte,
// and no reduction can lose the peak.
package timeline

import (
	"fmt"

	"memorymark/internal/trace"
)

// Options says how much detail to compute. The zero value suits a picture.
type Options struct {
	From, To int // the events shown, To excluded; To 0 is the end
	Columns  int // at most this many columns; 0 is 1200
	Detail   int // at most this many allocations of their own; 0 is 2000
	Steps    int // at most this many steps in all shapes together; 0 is 40,000
	Groups   int // at most this many stacks with a colour of their own; 0 is 8

	// Marks are the begins and ends of phases; nil takes those of the trace.
	Marks []trace.Mark
	// ByStack colours by stack even if the category is known.
	ByStack bool
	// Label names the group that a stack belongs to; nil takes its innermost
	// frame.
	Label func(trace.StackID) string
}

// Zoomable is the detail for a page that can be zoomed into.
var Zoomable = Options{Columns: 20_000, Detail: 30_000, Steps: 300_000}

func (o Options) withDefaults(t *trace.Trace) (Options, error) {
	if o.To == 0 {
		o.To = len(t.Events)
	}
	if o.From < 0 || o.From > o.To || o.To > len(t.Events) {
		return o, fmt.Errorf("events %d to %d: the trace has %d", o.From, o.To, len(t.Events))
	}
	o.Columns = min(orDefault(o.Columns, 1200), o.To-o.From+1)
	o.Detail = orDefault(o.Detail, 2000)
	o.Steps = orDefault(o.Steps, 40_000)
	o.Groups = min(orDefault(o.Groups, 8), StackColors)
	if o.Marks == nil {
		o.Marks = t.Marks
	}
	if o.Label == nil {
		o.Label = innermost(t.Stacks)
	}
	return o, nil
}

func orDefault(n, standard int) int {
	if n <= 0 {
		return standard
	}
	return n
}

// Timeline is a picture ready to be drawn. Its x axis is counted in columns and
// its y axis in bytes.
type Timeline struct {
	From, To int                // the events shown, To excluded, after the moment before them
	Events   int                // of the trace
	Moments  []int              // that each column shows
	Elapsed  []int64            // microseconds from the first event to the start of each column, and to the end; nil if not recorded
	Shapes   []Shape            // from the bottom to the top
	Bands    []Band             // the smaller allocations by group, each on the shapes of its category
	Groups   []Group            // what the colours mean
	Active   Line               // requested bytes in use
	Peak     Peak               // of Active
	Spans    []Span             // phases
	Failures []FailedAllocation // allocations that failed
	Lost     int                // Trace.Lost: above 0 the picture is approximate
	Device   int

	Allocated, Reserved Line // empty if unknown

	Stacks *trace.Stacks // resolves Shape.Stack
}

// Line is a total. Within a column it moves between Min and Max.
type Line struct{ Min, Max []int64 }

// Peak is the moment with the most active memory, the first if there are
// several.
type Peak struct {
	Column  int   `json:"column"`
	Event   int   `json:"event"`
	Bytes   int64 `json:"bytes"`
	Elapsed int64 `json:"elapsed"` // microseconds since the first event, if Timeline.Elapsed is known
}

// Build computes the timeline of a trace that is linked. The lifetimes are
// those of the trace, classified if categories are to be seen; nil takes them
// from the trace. It fails on amounts that overflow an integer.
func Build(t *trace.Trace, lifetimes []trace.Lifetime, levels Levels, opts Options) (*Timeline, error) {
	opts, err := opts.withDefaults(t)
	if err != nil {
		return nil, err
	}
	if err := levels.check(t); err != nil {
		return nil, err
	}
	if lifetimes == nil {
		lifetimes = t.Lifetimes()
	}
	active, err := activeOf(t, lifetimes)
	if err != nil {
		return nil, err
	}
	tl := &Timeline{
		From: opts.From, To: opts.To, Events: len(t.Events),
		Lost: t.Lost, Device: t.Device, Stacks: t.Stacks,
	}
	tl.findMoments(active, opts.Columns)
	tl.clock(t)
	tl.Active = tl.reduce(active[1:], active[0])
	tl.Allocated = tl.reduceLevel(levels.Allocated)
	tl.Reserved = tl.reduceLevel(levels.Reserved)
	tl.Spans = tl.spans(opts.Marks, active)
	tl.Failures = tl.failures(t)
	pieces := tl.pieces(lifetimes)
	tl.group(pieces, opts)
	tl.stack(pieces, opts)
	return tl, nil
}

// X returns where the moment after an event begins on the x axis, in columns.
func (tl *Timeline) X(event int) float64 {
	return float64(event-tl.From+1) * float64(len(tl.Moments)) / float64(tl.To-tl.From+1)
}

// innermost labels a stack by the function that requested the memory.
func innermost(stacks *trace.Stacks) func(trace.StackID) string {
	return func(id trace.StackID) string {
		if stacks == nil || id == 0 {
			return "no stack recorded"
		}
		f := stacks.Frames(id)[0]
		return fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Name)
	}
}
