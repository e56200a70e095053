package recording

import (
	"cmp"
	"fmt"
	"slices"

	"memorymark/internal/trace"
)

// The ways to group live memory.
const (
	ByLine     = "line"
	ByStack    = "stack"
	BySize     = "size"
	ByCategory = "category"
	ByMetadata = "metadata"
)

// Top is the largest groups of live memory at an event.
type Top struct {
	File      string     `json:"file"`
	Device    int        `json:"device"`
	At        string     `json:"at"`    // as asked: peak, end, oom or a number
	Event     int        `json:"event"` // -1 is before the first
	LiveBytes int64      `json:"live_bytes"`
	LiveCount int        `json:"live_count"`
	By        string     `json:"by"`
	Groups    []TopGroup `json:"groups"`
	Rest      *Amount    `json:"rest,omitempty"` // the groups that are not listed
}

// TopGroup is a set of allocations. They have Place in common, or EachBytes in
// groups by size.
type TopGroup struct {
	Amount
	EachBytes *int64 `json:"each_bytes,omitempty"`
	// Metadata is what the program said of the allocations up to that moment, in groups by metadata.
	Metadata string `json:"metadata,omitempty"`
	// Stacks is how many stacks a group by line has; Frames are those of the
	// one with the most bytes.
	Stacks int `json:"stacks,omitempty"`
	Place
}

// newTop groups the live memory at an event and keeps the n largest groups.
func newTop(t *trace.Trace, lifetimes []trace.Lifetime, event int, by string, n int) (*Top, error) {
	live := trace.Live(lifetimes, event)
	level := trace.At(live, event)
	top := &Top{Device: t.Device, Event: event, LiveBytes: level.Bytes, LiveCount: level.Count, By: by}
	switch by {
	case ByLine, ByStack:
		top.Groups = topGroups(trace.GroupBy(live, trace.BySite), level.Bytes, func(g *TopGroup, s trace.Site) {
			g.Place = newPlace(t.Stacks.Frames(s.Stack), s.For, s.Before)
		})
		if by == ByLine {
			top.mergeLines()
		}
	case BySize:
		top.Groups = topGroups(trace.GroupBy(live, trace.BySize), level.Bytes, func(g *TopGroup, each int64) {
			g.EachBytes = &each
		})
	case ByCategory:
		top.Groups = topGroups(trace.GroupBy(live, trace.ByCategory), level.Bytes, func(g *TopGroup, c trace.Category) {
			g.Category = CategoryName(c)
		})
	case ByMetadata:
		said := t.Metadata(event)
		byMetadata := func(l *trace.Lifetime) string { return said[l.ID] }
		top.Groups = topGroups(trace.GroupBy(live, byMetadata), level.Bytes, func(g *TopGroup, text string) {
			g.Metadata = text
		})
	default:
		return nil, fmt.Errorf("group by %q: it can be %s, %s, %s, %s or %s", by, ByLine, ByStack, BySize, ByCategory, ByMetadata)
	}
	top.keep(n)
	return top, nil
}

func topGroups[K comparable](groups []trace.Group[K], total int64, set func(*TopGroup, K)) []TopGroup {
	out := make([]TopGroup, len(groups))
	for i, g := range groups {
		out[i].Amount = newAmount(g.Bytes, g.Count, total)
		set(&out[i], g.Key)
	}
	return out
}

// lineKey is what a group by line has in common.
type lineKey struct {
	category, node string
	before         bool
	model, user    trace.Frame
}

func lineOf(p *Place) lineKey {
	line := func(f *trace.Frame) trace.Frame {
		if f == nil {
			return trace.Frame{}
		}
		return trace.Frame{File: f.File, Line: f.Line, Name: f.Name} // of any node of a compiled graph
	}
	return lineKey{p.Category, p.BackwardNode, p.BeforeRecording, line(p.ModelFrame), line(p.UserFrame)}
}

// mergeLines merges groups whose stacks share the same lines.
func (t *Top) mergeLines() {
	index := make(map[lineKey]int)
	merged := t.Groups[:0]
	for _, g := range t.Groups {
		key := lineOf(&g.Place)
		i, ok := index[key]
		if !ok {
			i = len(merged)
			index[key] = i
			merged = append(merged, TopGroup{Place: g.Place})
		}
		m := &merged[i]
		m.Amount = newAmount(m.Bytes+g.Bytes, m.Count+g.Count, t.LiveBytes)
		m.Stacks++
	}
	slices.SortStableFunc(merged, func(a, b TopGroup) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Count, a.Count))
	})
	t.Groups = merged
}

// keep keeps n groups and sums up the others.
func (t *Top) keep(n int) {
	if n <= 0 || n >= len(t.Groups) {
		return
	}
	var bytes int64
	var count int
	for _, g := range t.Groups[n:] {
		bytes += g.Bytes
		count += g.Count
	}
	rest := newAmount(bytes, count, t.LiveBytes)
	t.Rest = &rest
	t.Groups = t.Groups[:n]
}
