package timeline

import (
	"cmp"
	"slices"

	"memorymark/internal/trace"
)

// Shape is an allocation as an area: Size high, from the column of its first
// step up to, but not including, End. It moves down when something below it is
// freed.
//
// The ID None stands for everything of a category that was live before the
// first event and stays.
type Shape struct {
	ID          trace.ID
	Size        int64
	Stack       trace.StackID
	For         trace.Category
	Born, Freed int // events; Born is -1 for before the recording, Freed is -1 for never
	Group       int // index into Timeline.Groups
	Steps       []Step
	End         int
}

// Step says that from a column on, a shape stands at an offset.
type Step struct {
	Column int
	Offset int64
}

// Band is the sum of the allocations of a group that are too small to be
// shapes.
type Band struct {
	Group   int
	Heights []int64 // by column
	Count   int     // allocations
	Largest int64
}

// piece is an allocation that at least one column shows.
type piece struct {
	*trace.Lifetime
	first, end int // columns
	group      int
}

// pieces returns what the columns show. What was live before the first event
// and outlives the window is one piece for each category: nothing that happens
// in the window tells its parts apart.
func (tl *Timeline) pieces(lifetimes []trace.Lifetime) []piece {
	var pieces []piece
	var before [256]int64 // by category
	for i := range lifetimes {
		l := &lifetimes[i]
		if l.Alloc < 0 && l.Gone >= tl.To {
			before[l.For] += l.Size
			continue
		}
		if l.Gone <= tl.Moments[0] || l.Alloc >= tl.To {
			continue // of millions, most are outside a small window
		}
		first, _ := slices.BinarySearch(tl.Moments, l.Alloc)
		end, _ := slices.BinarySearch(tl.Moments, l.Gone)
		if first < end && l.Size > 0 {
			pieces = append(pieces, piece{Lifetime: l, first: first, end: end})
		}
	}
	for category, size := range before {
		if size > 0 {
			l := &trace.Lifetime{ID: trace.None, Size: size, Alloc: -1, Gone: tl.Events, For: trace.Category(category)}
			pieces = append(pieces, piece{Lifetime: l, end: len(tl.Moments)})
		}
	}
	return pieces
}

// stack fills Shapes and Bands.
//
// The largest allocations become shapes. Size decides, not size times
// lifetime: a short giant is what makes a peak, and it must not vanish among
// the small ones.
func (tl *Timeline) stack(pieces []piece, opts Options) {
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.ID, b.ID))
	})
	for detail := min(opts.Detail, len(pieces)); ; detail = detail * 3 / 4 {
		largest := slices.Clone(pieces[:detail])
		slices.SortFunc(largest, func(a, b piece) int {
			return cmp.Or(cmp.Compare(layer(a, opts), layer(b, opts)), cmp.Compare(a.ID, b.ID))
		})
		shapes, ok := tl.pile(largest, opts.Steps)
		if ok {
			tl.Shapes = shapes
			tl.Bands = tl.bands(pieces[detail:])
			return
		}
	}
}

// layer orders the stack: what was there before and is not known comes first,
// then categories as trace.Categories orders them. Without categories it is the
// order of birth, which IDs have.
func layer(p piece, opts Options) int {
	if opts.ByStack || p.Alloc < 0 && p.For == trace.Unknown {
		return -1
	}
	return slices.Index(trace.Categories, p.For)
}

// pile puts pieces on top of each other; ok is false if that took more than
// the given number of steps. It costs pieces × columns and not, as replaying
// the frees would, frees × pieces.
func (tl *Timeline) pile(pieces []piece, most int) (shapes []Shape, ok bool) {
	top := make([]int64, len(tl.Moments))
	shapes = make([]Shape, len(pieces))
	var flat []Step // of all shapes, so that one slice grows and not thousands
	for i, p := range pieces {
		start := len(flat)
		for c := p.first; c < p.end; c++ {
			if len(flat) == start || flat[len(flat)-1].Offset != top[c] {
				flat = append(flat, Step{c, top[c]})
			}
			top[c] += p.Size
		}
		if len(flat) > most {
			return nil, false
		}
		shapes[i] = tl.shape(p, flat[start:len(flat):len(flat)])
	}
	return shapes, true
}

func (tl *Timeline) shape(p piece, steps []Step) Shape {
	s := Shape{
		ID: p.ID, Size: p.Size, Stack: p.Stack, For: p.For, Group: p.group,
		Born: p.Alloc, Freed: p.Gone, Steps: steps, End: p.end,
	}
	if s.Freed == tl.Events {
		s.Freed = -1
	}
	return s
}

// bands sums pieces by group, in the order of the groups.
func (tl *Timeline) bands(pieces []piece) []Band {
	columns := len(tl.Moments)
	sums := make([]Band, len(tl.Groups))
	for _, p := range pieces {
		b := &sums[p.group]
		if b.Heights == nil {
			b.Group, b.Heights = p.group, make([]int64, columns+1)
		}
		b.Heights[p.first] += p.Size // changes first, heights below
		b.Heights[p.end] -= p.Size
		b.Count++
		b.Largest = max(b.Largest, p.Size)
	}
	sums = slices.DeleteFunc(sums, func(b Band) bool { return b.Count == 0 })
	for i := range sums {
		heights := sums[i].Heights[:columns]
		for c := 1; c < columns; c++ {
			heights[c] += heights[c-1]
		}
		sums[i].Heights = heights
	}
	return sums
}
