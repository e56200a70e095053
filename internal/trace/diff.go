package trace

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Held is how much memory something holds.
type Held struct {
	Bytes int64
	Count int
}

// HoldingChange is what one stack holds in one trace and in another.
type HoldingChange struct {
	Frames        []Frame // innermost first, empty if not recorded
	For           Category
	Old           bool // live before the recording
	Before, After Held
}

// Bytes returns by how much the stack holds more than before.
func (c *HoldingChange) Bytes() int64 { return c.After.Bytes - c.Before.Bytes }

// Diff compares what is live in two traces by stack and category and returns
// the differences, the largest first. Traces of different files do not share a
// table, so stacks are the same if their frames are.
func Diff(before *Tables, liveBefore []Lifetime, after *Tables, liveAfter []Lifetime) []HoldingChange {
	d := differ{index: make(map[diffKey]int)}
	for _, g := range GroupBy(liveBefore, BySite) {
		d.at(before, g.Key).Before = Held{g.Bytes, g.Count}
	}
	for _, g := range GroupBy(liveAfter, BySite) {
		d.at(after, g.Key).After = Held{g.Bytes, g.Count}
	}
	changes := slices.DeleteFunc(d.changes, func(c HoldingChange) bool { return c.Before == c.After })
	slices.SortStableFunc(changes, func(a, b HoldingChange) int {
		return cmp.Or(cmp.Compare(abs(b.Bytes()), abs(a.Bytes())), cmp.Compare(b.Bytes(), a.Bytes()))
	})
	return changes
}

type diffKey struct {
	stack string
	what  Category
	old   bool
}

type differ struct {
	index   map[diffKey]int
	changes []HoldingChange
}

// at returns the change of a site, a new one if there is none yet. It is valid
// until the next call.
func (d *differ) at(t *Tables, s Site) *HoldingChange {
	frames := t.Stacks.Frames(s.Stack)
	key := diffKey{stackText(frames), s.For, s.Before}
	i, ok := d.index[key]
	if !ok {
		i = len(d.changes)
		d.index[key] = i
		d.changes = append(d.changes, HoldingChange{Frames: frames, For: s.For, Old: s.Before})
	}
	return &d.changes[i]
}

// stackText spells a stack so that equal texts are equal stacks.
func stackText(frames []Frame) string {
	var b strings.Builder
	for _, f := range frames {
		b.WriteString(f.File)
		b.WriteByte(0)
		b.WriteString(strconv.Itoa(f.Line))
		b.WriteByte(0)
		b.WriteString(f.Name)
		b.WriteByte(0)
	}
	return b.String()
}

func abs(n int64) int64 { return max(n, -n) }
