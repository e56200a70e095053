package trace

import (
	"cmp"
	"slices"
)

// Since returns the trace as if recording had begun just before an event: what
// is live by then is Initial, what happened before is unknown. It shares the
// tables. Unlike in a recording that began so late, allocations keep what the
// trace knows of them.
func (t *Trace) Since(event int) *Trace {
	out := *t
	c := cutter{from: t, event: event, ids: make([]ID, t.Allocations())}
	out.Initial = c.initial()
	out.Events = slices.Clone(t.Events[event:])
	for i := range out.Events {
		e := &out.Events[i]
		if e.Action == Alloc {
			c.ids[e.ID] = c.next
			c.next++
		}
		e.ID = c.id(e.ID)
	}
	out.Final = slices.Clone(t.Final)
	for i := range out.Final {
		s := &out.Final[i]
		s.Blocks = slices.Clone(s.Blocks)
		for j := range s.Blocks {
			s.Blocks[j].ID = c.id(s.Blocks[j].ID)
		}
	}
	out.Marks = c.marks()
	return &out
}

// cutter renumbers the remaining allocations.
type cutter struct {
	from  *Trace
	event int
	ids   []ID // new by old, 0 for those removed
	next  ID
}

func (c *cutter) id(old ID) ID {
	if old < 0 {
		return old
	}
	return c.ids[old]
}

// initial returns what is live before the event, by address.
func (c *cutter) initial() []Block {
	var out []Block
	for _, l := range Live(c.from.Lifetimes(), c.event-1) {
		b := Block{Requested: l.Size, Stack: l.Stack, Note: l.Note, State: Allocated, ID: l.ID, For: l.For}
		if l.Alloc < 0 {
			b.Addr = c.from.Initial[l.ID].Addr
		} else {
			b.Addr = c.from.Events[l.Alloc].Addr
		}
		if l.Freed < c.event {
			b.State = PendingFree
		}
		out = append(out, b)
	}
	sizes := c.finalSizes()
	slices.SortStableFunc(out, func(a, b Block) int { return cmp.Compare(a.Addr, b.Addr) })
	for i := range out {
		out[i].Size = sizes[out[i].ID]
		c.ids[out[i].ID] = c.next
		out[i].ID = c.next
		c.next++
	}
	return out
}

// finalSizes returns the real sizes of allocations that are live at the end.
func (c *cutter) finalSizes() map[ID]int64 {
	sizes := make(map[ID]int64)
	for _, s := range c.from.Final {
		for _, b := range s.Blocks {
			if b.State != Inactive {
				sizes[b.ID] = b.Size
			}
		}
	}
	return sizes
}

// marks keeps those that begin at the event or later.
func (c *cutter) marks() []Mark {
	var out []Mark
	open := make(map[string]int)
	for _, m := range c.from.Marks {
		if m.Event < c.event || m.End && open[m.Name] == 0 {
			continue
		}
		if m.End {
			open[m.Name]--
		} else {
			open[m.Name]++
		}
		m.Event -= c.event
		out = append(out, m)
	}
	return out
}
