package report

import (
	"fmt"
	"io"

	"memorymark/internal/figure"
	"memorymark/internal/trace"
)

// The ways to group what is live.
const (
	ByStack    = "stack"
	BySize     = "size"
	ByCategory = "category"
)

// Top is the largest of what is live at an event.
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

// TopGroup is a set of allocations. What it has in common is in Place, but for
// groups by size, where it is EachBytes.
type TopGroup struct {
	Amount
	EachBytes *int64 `json:"each_bytes,omitempty"`
	Place
}

// NewTop groups what is live at an event and keeps the n largest groups.
func NewTop(t *trace.Trace, lifetimes []trace.Lifetime, event int, by string, n int) (*Top, error) {
	live := trace.Live(lifetimes, event)
	level := trace.At(live, event)
	top := &Top{Device: t.Device, Event: event, LiveBytes: level.Bytes, LiveCount: level.Count, By: by}
	switch by {
	case ByStack:
		top.Groups = topGroups(trace.GroupBy(live, trace.BySite), level.Bytes, func(g *TopGroup, s trace.Site) {
			g.Place = newPlace(t.Stacks.Frames(s.Stack), s.For, s.Before)
		})
	case BySize:
		top.Groups = topGroups(trace.GroupBy(live, trace.BySize), level.Bytes, func(g *TopGroup, each int64) {
			g.EachBytes = &each
		})
	case ByCategory:
		top.Groups = topGroups(trace.GroupBy(live, trace.ByCategory), level.Bytes, func(g *TopGroup, c trace.Category) {
			g.Category = categoryName(c)
		})
	default:
		return nil, fmt.Errorf("group by %q: it can be %s, %s or %s", by, ByStack, BySize, ByCategory)
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

// keep leaves n groups and sums up the others.
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

// Write writes the groups as a table, each with so many frames of its
// stack; -1 is all of them.
func (t *Top) Write(w io.Writer, width, frames int) error {
	fmt.Fprintf(w, "%s, device %d\n%s live in %s %s\n\n", t.File, t.Device,
		heading(size(t.LiveBytes)), plural(t.LiveCount, "allocation"), atText(t.At, t.Event))
	tab := t.table(frames)
	if t.Rest != nil {
		cells := make([]string, len(tab.columns))
		cells[0], cells[1], cells[2] = size(t.Rest.Bytes), figure.Count(t.Rest.Count), percent(t.Rest.Share)
		cells[3] = "the rest"
		tab.rows = append(tab.rows, row{cells: cells})
	}
	tab.write(w, width)
	return nil
}

func atText(at string, event int) string {
	switch {
	case event < 0:
		return "before the first event"
	case at == "oom":
		return fmt.Sprintf("when memory ran out (event %s)", figure.Count(event))
	case at == "peak" || at == "end":
		return fmt.Sprintf("at the %s (event %s)", at, figure.Count(event))
	default:
		return "at event " + figure.Count(event)
	}
}

func (t *Top) table(frames int) *table {
	tab := &table{columns: []column{
		{title: "SIZE", right: true}, {title: "COUNT", right: true}, {title: "SHARE", right: true},
	}}
	switch t.By {
	case BySize:
		tab.columns = append(tab.columns, column{title: "EACH", right: true})
	case ByCategory:
		tab.columns = append(tab.columns, column{title: "CATEGORY"})
	default:
		tab.columns = append(tab.columns, column{title: "CATEGORY"}, column{title: "MADE BY", stretch: true},
			column{title: "CALLED FROM", stretch: true})
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		cells := []string{size(g.Bytes), figure.Count(g.Count), percent(g.Share)}
		switch t.By {
		case BySize:
			cells = append(cells, size(*g.EachBytes))
		case ByCategory:
			cells = append(cells, categoryText(g.Category))
		default:
			cells = append(cells, categoryText(g.Category), g.madeBy(), g.calledFrom())
		}
		tab.rows = append(tab.rows, row{cells: cells, below: g.below(frames), color: categoryColor(g.Category)})
	}
	return tab
}
