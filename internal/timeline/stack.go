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
// The ID None is everything of a category that was live before the first event
// and stays.
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

// Step is the offset of a shape from a column on.
type Step struct {
	Column int
	Offset int64
}

// Band is the sum of the allocations of a group that are too small to be
// shapes. It is stacked on the shapes of its category, below those of the next:
// the order of the stack does not depend on how many shapes there are.
type Band struct {
	Group   int
	Bottoms []int64 // by column
	Heights []int64 // by column
	Count   int     // allocations
	Largest int64
	layer   int
}

// piece is an allocation that at least one column shows.
type piece struct {
	*trace.Lifetime
	first, end int // columns
	group      int
	layer      int // its position in the stack, from the bottom
}

// pieces returns what the columns show. Memory that was live before the first
// event and outlives the window is one piece for each category: nothing in the
// window distinguishes its parts.
func (tl *Timeline) pieces(lifetimes []trace.Lifetime) []piece {
	within := func(l *trace.Lifetime) bool { return l.Gone > tl.Moments[0] && l.Alloc < tl.To }
	n := 0 // of millions, most are outside a small window
	for i := range lifetimes {
		if within(&lifetimes[i]) {
			n++
		}
	}
	pieces := make([]piece, 0, n)
	var before [256]int64 // by category
	for i := range lifetimes {
		l := &lifetimes[i]
		if l.Alloc < 0 && l.Gone >= tl.To {
			before[l.For] += l.Size
			continue
		}
		if !within(l) {
			continue
		}
		first, _ := slices.BinarySearch(tl.Moments, l.Alloc)
		end, _ := slices.BinarySearch(tl.Moments, l.Gone)
		if first < end && l.Size > 0 {
			pieces = append(pieces, piece{Lifetime: l, first: first, end: end, layer: layerOf(l)})
		}
	}
	for category, size := range before {
		if size > 0 {
			l := &trace.Lifetime{ID: trace.None, Size: size, Alloc: -1, Gone: tl.Events, For: trace.Category(category)}
			pieces = append(pieces, piece{Lifetime: l, end: len(tl.Moments), layer: layerOf(l)})
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
	largestFirst(pieces, opts.Detail)
	for detail := min(opts.Detail, len(pieces)); ; detail = detail * 3 / 4 {
		largest := slices.Clone(pieces[:detail])
		slices.SortFunc(largest, func(a, b piece) int {
			return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.ID, b.ID))
		})
		bands := tl.bands(pieces[detail:])
		shapes, ok := tl.pile(largest, bands, opts.Steps)
		if ok {
			tl.Shapes, tl.Bands = shapes, bands
			return
		}
	}
}

// largestFirst sorts the n largest pieces to the front, the largest first. Of
// millions the others stay as they are: sorting them all would take longer than
// the rest of the picture.
func largestFirst(pieces []piece, n int) {
	larger := func(a, b piece) int { return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.ID, b.ID)) }
	from, to := 0, len(pieces)
	for from < n && n < to {
		pivot := pieces[from+(to-from)/2]
		i, j := from, to-1
		for i <= j {
			for larger(pieces[i], pivot) < 0 {
				i++
			}
			for larger(pieces[j], pivot) > 0 {
				j--
			}
			if i <= j {
				pieces[i], pieces[j] = pieces[j], pieces[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			to = j + 1
		case n > i:
			from = i
		default: // all before n are larger than all after it
			from = n
		}
	}
	slices.SortFunc(pieces[:min(n, len(pieces))], larger)
}

// layerOf orders the stack, whatever its colours mean: unknown memory from
// before comes first, then categories as trace.Categories orders them. Within a
// category it is the order of allocation, which is that of IDs.
func layerOf(l *trace.Lifetime) int {
	if l.Alloc < 0 && l.For == trace.Unknown {
		return -1
	}
	return slices.Index(trace.Categories, l.For)
}

// pile stacks pieces, and on those of a layer its bands; ok is false if that
// needs more than the given number of steps. Its cost is pieces × columns;
// replaying the frees would cost frees × pieces.
func (tl *Timeline) pile(pieces []piece, bands []Band, most int) (shapes []Shape, ok bool) {
	top := make([]int64, len(tl.Moments))
	shapes = make([]Shape, len(pieces))
	var flat []Step // of all shapes, so that one slice grows and not thousands
	for i, p := range pieces {
		for len(bands) > 0 && bands[0].layer < p.layer {
			bands[0].lieOn(top)
			bands = bands[1:]
		}
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
	for i := range bands {
		bands[i].lieOn(top)
	}
	return shapes, true
}

func (b *Band) lieOn(top []int64) {
	b.Bottoms = slices.Clone(top)
	for c, h := range b.Heights {
		top[c] += h
	}
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

// bands sums pieces by layer and group, from the bottom to the top.
func (tl *Timeline) bands(pieces []piece) []Band {
	columns := len(tl.Moments)
	type key struct{ layer, group int }
	index := make(map[key]int)
	var sums []Band
	for i := range pieces {
		p := &pieces[i]
		k := key{p.layer, p.group}
		at, ok := index[k]
		if !ok {
			at = len(sums)
			index[k] = at
			sums = append(sums, Band{Group: k.group, layer: k.layer, Heights: make([]int64, columns+1)})
		}
		b := &sums[at]
		b.Heights[p.first] += p.Size // changes first, heights below
		b.Heights[p.end] -= p.Size
		b.Count++
		b.Largest = max(b.Largest, p.Size)
	}
	for i := range sums {
		heights := sums[i].Heights[:columns]
		for c := 1; c < columns; c++ {
			heights[c] += heights[c-1]
		}
		sums[i].Heights = heights
	}
	slices.SortFunc(sums, func(a, b Band) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.Group, b.Group))
	})
	return sums
}
