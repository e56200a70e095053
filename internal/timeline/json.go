package timeline

import (
	"encoding/json"

	"memorymark/internal/trace"
)

// Wire is a timeline as pages read it (docs/timeline-format.md). It is kept
// small: long lists of numbers are differences, and stacks and frames are stored
// once and referenced by index.
type Wire struct {
	From      int                `json:"from"`
	To        int                `json:"to"`
	Events    int                `json:"events"`
	Device    int                `json:"device"`
	Lost      int                `json:"lost"`
	Peak      Peak               `json:"peak"`
	Moments   []int64            `json:"moments"`             // differences
	Elapsed   []int64            `json:"elapsed,omitempty"`   // differences, absent if not recorded
	Active    []int64            `json:"active"`              // differences of the highest values, as in the next two
	Allocated []int64            `json:"allocated,omitempty"` // absent if not known
	Reserved  []int64            `json:"reserved,omitempty"`  // absent if not known
	Groups    []Group            `json:"groups"`
	Shapes    []WireShape        `json:"shapes"`
	Bands     []WireBand         `json:"bands"`
	Spans     []Span             `json:"spans"`
	Failures  []FailedAllocation `json:"failures"`
	Stacks    [][]int            `json:"stacks"` // frames of each stack, innermost first; 0 is the empty one
	Frames    []string           `json:"frames"`
}

// WireShape is a shape as [id, size, group, stack, born, freed, end, column,
// offset, column, offset, …], the columns and offsets as differences.
type WireShape []int64

// WireBand is a band.
type WireBand struct {
	Group   int     `json:"group"`
	Count   int     `json:"count"`
	Largest int64   `json:"largest"`
	Bottoms []int64 `json:"bottoms"` // differences
	Heights []int64 `json:"heights"` // differences
}

// MarshalJSON writes the timeline for a page.
func (tl *Timeline) MarshalJSON() ([]byte, error) { return json.Marshal(tl.Wire()) }

// Wire returns the timeline for a page.
func (tl *Timeline) Wire() *Wire {
	w := &Wire{
		From: tl.From, To: tl.To, Events: tl.Events, Device: tl.Device, Lost: tl.Lost, Peak: tl.Peak,
		Elapsed: differences(tl.Elapsed), Moments: differences(tl.Moments), Active: differences(tl.Active.Max),
		Allocated: differences(tl.Allocated.Max), Reserved: differences(tl.Reserved.Max),
		Groups: orEmpty(tl.Groups), Spans: orEmpty(tl.Spans), Failures: orEmpty(tl.Failures),
		Shapes: []WireShape{}, Bands: []WireBand{}, Stacks: [][]int{{}}, Frames: []string{},
	}
	stacks := stackTable{Wire: w, stacks: map[trace.StackID]int{0: 0}, frames: make(map[trace.Frame]int)}
	for i := range tl.Shapes {
		w.Shapes = append(w.Shapes, tl.Shapes[i].wire(stacks.add(tl.Stacks, tl.Shapes[i].Stack)))
	}
	for _, b := range tl.Bands {
		w.Bands = append(w.Bands, WireBand{b.Group, b.Count, b.Largest, differences(b.Bottoms), differences(b.Heights)})
	}
	return w
}

// orEmpty turns nil into an empty list, so that pages need not check.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (s *Shape) wire(stack int) WireShape {
	out := make(WireShape, 0, 7+2*len(s.Steps))
	out = append(out, int64(s.ID), s.Size, int64(s.Group), int64(stack), int64(s.Born), int64(s.Freed), int64(s.End))
	var last Step
	for _, step := range s.Steps {
		out = append(out, int64(step.Column-last.Column), step.Offset-last.Offset)
		last = step
	}
	return out
}

func differences[T int | int64](values []T) []int64 {
	if values == nil {
		return nil
	}
	out := make([]int64, len(values))
	var last T
	for i, v := range values {
		out[i] = int64(v - last)
		last = v
	}
	return out
}

// stackTable collects the stacks of shapes.
type stackTable struct {
	*Wire
	stacks map[trace.StackID]int
	frames map[trace.Frame]int
}

func (t *stackTable) add(table *trace.Stacks, id trace.StackID) int {
	if at, ok := t.stacks[id]; ok {
		return at
	}
	var stack []int
	for _, f := range table.Frames(id) {
		at, ok := t.frames[f]
		if !ok {
			at = len(t.Frames)
			t.frames[f] = at
			t.Frames = append(t.Frames, f.String())
		}
		stack = append(stack, at)
	}
	t.stacks[id] = len(t.Stacks)
	t.Stacks = append(t.Stacks, stack)
	return t.stacks[id]
}
