package recording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/trace"
)

// Flame is the live memory at a moment as a call tree.
type Flame struct {
	Device    int        `json:"device"`
	Event     int        `json:"event" doc:"-1 is before the first"`
	LiveBytes int64      `json:"live_bytes"`
	LiveCount int        `json:"live_count"`
	Roots     []FlameRow `json:"roots" doc:"the outermost callers, the largest first"`
}

// FlameRow is a caller, or at the end of a stack a category.
type FlameRow struct {
	Name     string     `json:"name"`
	Kind     string     `json:"kind" enum:"user,library,torch,category,rest" doc:"whose code it is; torch is a run of PyTorch's frames, rest what is too small to show"`
	Bytes    int64      `json:"total_bytes"`
	Count    int        `json:"count"`
	Children []FlameRow `json:"children,omitempty"`
}

// minShare is the share of live memory below which rows are combined: smaller
// ones cannot be clicked.
const minShare = 1.0 / 1000

// Flame returns the live memory at a moment by the stacks that allocated it.
// Runs of PyTorch's own frames are one row.
func (r *Recording) Flame(at string) (*Flame, error) {
	event, err := r.Event(at)
	if err != nil {
		return nil, err
	}
	live := trace.Live(r.Lifetimes(), event)
	level := trace.At(live, event)
	var root flameNode
	for _, g := range trace.GroupBy(live, trace.BySite) {
		root.add(flamePath(r.Stacks.Frames(g.Key.Stack), g.Key), g.Bytes, g.Count)
	}
	least := int64(float64(level.Bytes) * minShare)
	return &Flame{Device: r.Device, Event: event, LiveBytes: level.Bytes, LiveCount: level.Count, Roots: root.rows(least)}, nil
}

// flameKey identifies a row among its siblings.
type flameKey struct{ name, kind string }

// flamePath leads from the outermost caller to the category.
func flamePath(frames []trace.Frame, site trace.Site) []flameKey {
	var out []flameKey
	for _, f := range slices.Backward(frames) {
		switch {
		case f.IsTorch():
			if key := (flameKey{"torch", "torch"}); len(out) == 0 || out[len(out)-1] != key {
				out = append(out, key)
			}
		case f.Line == 0: // the modules of a prediction call each other
			for _, part := range strings.Split(trace.AnyLayer(f.Name), ".") {
				out = append(out, flameKey{part, "library"})
			}
		case f.IsLibrary():
			out = append(out, flameKey{placeName(f), "library"})
		default:
			out = append(out, flameKey{placeName(f), "user"})
		}
	}
	if len(out) == 0 {
		out = append(out, flameKey{"no stack", "rest"})
	}
	what := site.For.String()
	if site.Before {
		what += ", from before the recording"
	}
	return append(out, flameKey{what, "category"})
}

// placeName names a frame by its function and location.
func placeName(f trace.Frame) string {
	return fmt.Sprintf("%s %s:%d", f.Name, f.Short().File, f.Line)
}

// flameNode is a row that is being summed up.
type flameNode struct {
	bytes    int64
	count    int
	children map[flameKey]*flameNode
}

func (n *flameNode) add(path []flameKey, bytes int64, count int) {
	n.bytes += bytes
	n.count += count
	if len(path) == 0 {
		return
	}
	if n.children == nil {
		n.children = make(map[flameKey]*flameNode)
	}
	child := n.children[path[0]]
	if child == nil {
		child = new(flameNode)
		n.children[path[0]] = child
	}
	child.add(path[1:], bytes, count)
}

// rows lists the children, the largest first and the small ones combined.
func (n *flameNode) rows(least int64) []FlameRow {
	var out []FlameRow
	var small int
	rest := FlameRow{Kind: "rest"}
	for key, child := range n.children {
		if child.bytes < least {
			small++
			rest.Bytes += child.bytes
			rest.Count += child.count
			continue
		}
		out = append(out, FlameRow{Name: key.name, Kind: key.kind, Bytes: child.bytes, Count: child.count, Children: child.rows(least)})
	}
	slices.SortFunc(out, func(a, b FlameRow) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	if small > 0 {
		rest.Name = fmt.Sprintf("%d smaller", small)
		out = append(out, rest)
	}
	return out
}
