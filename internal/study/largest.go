package study

import (
	"cmp"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// Allocation is a set of allocations of one size and purpose.
type Allocation struct {
	Bytes    bytesize.Bytes `json:"bytes"` // of each
	Category string         `json:"category"`
	Count    int            `json:"count"` // the most that are live at the same time
	Origins  []Origin       `json:"origins"`
}

// Origin is a line of code that makes such allocations.
type Origin struct {
	Place string `json:"place"` // as "model.py:53 forward", layers as "blocks.*"
	Count int    `json:"count"` // of the allocations live at the same time
	// Frames are the stack, innermost first.
	Frames []trace.Frame `json:"frames,omitempty"`
}

// maxAllocations is how many sets a result lists.
const maxAllocations = 16

// largest lists what is largest one by one, anywhere in a recording.
func largest(t *trace.Trace, lifetimes []trace.Lifetime) []Allocation {
	type key struct {
		size     int64
		category trace.Category
	}
	groups := make(map[key][]trace.Lifetime)
	var keys []key
	for _, l := range lifetimes {
		k := key{l.Size, l.For}
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], l)
	}
	place := func(c trace.Category) int { return slices.Index(trace.Categories, c) }
	slices.SortStableFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(place(a.category), place(b.category)))
	})
	out := []Allocation{}
	for _, k := range keys[:min(len(keys), maxAllocations)] {
		live := maxLive(groups[k])
		out = append(out, Allocation{bytesize.Bytes(k.size), k.category.String(), len(live), origins(t, live)})
	}
	return out
}

// maxLive returns those of some allocations that are live at the moment at
// which most of them are.
func maxLive(lifetimes []trace.Lifetime) []trace.Lifetime {
	at, most := -1, 0
	type change struct{ event, by int }
	var changes []change
	for _, l := range lifetimes {
		changes = append(changes, change{l.Alloc, 1}, change{l.Gone, -1})
	}
	// Of what happens at one event, frees come first: that is never too many.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.event, b.event), cmp.Compare(a.by, b.by)) })
	live := 0
	for _, c := range changes {
		if live += c.by; live > most {
			at, most = c.event, live
		}
	}
	return trace.Live(lifetimes, at)
}

// origins groups allocations by the line that made them, whatever the layer.
func origins(t *trace.Trace, live []trace.Lifetime) []Origin {
	var out []Origin
	for _, g := range trace.GroupBy(live, trace.BySite) {
		frames := t.Stacks.Frames(g.Key.Stack)
		place := placeOf(frames, g.Key)
		i := slices.IndexFunc(out, func(o Origin) bool { return o.Place == place })
		if i < 0 {
			i = len(out)
			out = append(out, Origin{Place: place, Frames: frames})
		}
		out[i].Count += g.Count
	}
	slices.SortStableFunc(out, func(a, b Origin) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

func placeOf(frames []trace.Frame, s trace.Site) string {
	f, ok := trace.InnermostModel(frames)
	switch {
	case ok && f.Line == 0: // a module of a prediction
		return f.File + " " + trace.AnyLayer(f.Name)
	case ok:
		f.File = f.File[strings.LastIndexAny(f.File, `/\`)+1:] // without folders
		return f.String()
	case s.Before:
		return "before the recording"
	default:
		return "backward"
	}
}
