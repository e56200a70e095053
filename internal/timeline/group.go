package timeline

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"memorymark/internal/trace"
)

// Color is what a colour means. Package draw chooses the colour on a screen or
// on paper.
type Color uint8

// The colours: one for each trace.Category, then these.
const (
	ColorBefore  Color = iota + 16 // live before the recording
	ColorOther                     // stacks without a colour of their own
	ColorNoStack                   // allocations without a recorded stack
	ColorStack                     // the first of StackColors
)

// StackColors is how many colours there are for groups of stacks.
const StackColors = 12

// Group is a set of allocations with one meaning and one colour. The groups of
// a timeline add up to its peak.
type Group struct {
	Label  string `json:"label"`
	Color  Color  `json:"color"`
	Count  int    `json:"count"`   // visible allocations
	AtPeak int64  `json:"at_peak"` // bytes
	Mean   int64  `json:"mean"`    // bytes, over all columns
}

// group fills Groups and assigns each piece its group: its category if known,
// else the label of its stack.
func (tl *Timeline) group(pieces []piece, opts Options) {
	type key struct {
		color Color
		label string
	}
	index := make(map[key]int)
	ofStack := make(map[trace.StackID]int) // labels are computed once for each stack
	add := func(k key) int {
		g, ok := index[k]
		if !ok {
			g = len(tl.Groups)
			index[k] = g
			tl.Groups = append(tl.Groups, Group{Label: k.label, Color: k.color})
		}
		return g
	}
	groupOf := func(p *piece) int {
		switch {
		case p.For != trace.Unknown && !opts.ByStack:
			return add(key{Color(p.For), p.For.String()})
		case p.Alloc < 0:
			return add(key{ColorBefore, "before recording"})
		}
		g, ok := ofStack[p.Stack]
		if !ok && p.Stack == 0 {
			g = add(key{ColorNoStack, opts.Label(0)})
		} else if !ok {
			g = add(key{ColorStack, opts.Label(p.Stack)})
		}
		ofStack[p.Stack] = g
		return g
	}
	for i := range pieces {
		pieces[i].group = groupOf(&pieces[i])
	}
	tl.measure(pieces)
	place := tl.rank(opts.Groups)
	for i := range pieces {
		pieces[i].group = place[pieces[i].group]
	}
}

// measure adds up the groups.
func (tl *Timeline) measure(pieces []piece) {
	areas := make([]float64, len(tl.Groups)) // bytes × columns can be more than an integer holds
	for _, p := range pieces {
		g := &tl.Groups[p.group]
		g.Count++
		areas[p.group] += float64(p.Size) * float64(p.end-p.first)
		if p.first <= tl.Peak.Column && tl.Peak.Column < p.end {
			g.AtPeak += p.Size
		}
	}
	for i := range areas {
		tl.Groups[i].Mean = int64(areas[i] / float64(len(tl.Moments)))
	}
}

// rank orders the groups as they are stacked, stacks by the area they take, and
// merges the stacks for which there is no colour. It returns the new index of
// each.
func (tl *Timeline) rank(most int) []int {
	order := make([]int, len(tl.Groups))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := tl.Groups[a], tl.Groups[b]
		return cmp.Or(cmp.Compare(x.row(), y.row()), cmp.Compare(y.Mean, x.Mean), cmp.Compare(x.Label, y.Label))
	})
	var ranked []Group
	var taken [StackColors]bool
	var others []int
	place := make([]int, len(tl.Groups))
	for _, g := range order {
		group := tl.Groups[g]
		if group.Color == ColorStack {
			if most == 0 {
				others = append(others, g)
				continue
			}
			most--
			group.Color = stackColor(group.Label, &taken)
		}
		place[g] = len(ranked)
		ranked = append(ranked, group)
	}
	if len(others) > 0 {
		sum := Group{Label: fmt.Sprintf("%d other stacks", len(others)), Color: ColorOther}
		for _, g := range others {
			place[g] = len(ranked)
			sum.Count += tl.Groups[g].Count
			sum.AtPeak += tl.Groups[g].AtPeak
			sum.Mean += tl.Groups[g].Mean
		}
		ranked = append(ranked, sum)
	}
	tl.Groups = ranked
	return place
}

// row is the position of a group in a legend, which follows the order of the
// stack.
func (g Group) row() int {
	if g.Color == ColorBefore {
		return -1
	}
	if at := slices.Index(trace.Categories, trace.Category(g.Color)); at >= 0 {
		return at
	}
	return slices.Index(trace.Categories, trace.Unknown)
}

// stackColor picks a colour by the label, so that a stack looks the same in two
// pictures unless a larger group took its colour.
func stackColor(label string, taken *[StackColors]bool) Color {
	h := fnv.New32a()
	h.Write([]byte(label))
	slot := int(h.Sum32() % StackColors)
	for taken[slot] {
		slot = (slot + 5) % StackColors // far in hue, and it visits all
	}
	taken[slot] = true
	return ColorStack + Color(slot)
}
