package trace

import "slices"

// This file finds where two traces realign after a difference. IDs do not help
// there, so requests match if they are of one kind and size.

// meeting is how many consecutive requests must match for two traces to be
// aligned again; fewer can match by chance.
const meeting = 8

// windows are how far ahead to search for a meeting, in requests. The nearest
// is tried first, so that the cost of a search is proportional to what it
// skips.
var windows = []int{64, 1 << 10, 1 << 14, 1 << 18}

// skip advances to the nearest position from which both traces match, or to the
// end if there is none.
func (c *comparer) skip() {
	c.skipStrangers()
	for _, w := range windows {
		a, b, ok := meet(ahead(c.side[0][c.at[0]:], w), ahead(c.side[1][c.at[1]:], w))
		if ok {
			c.at[0] += a
			c.at[1] += b
			return
		}
		if w >= len(c.side[0])-c.at[0] && w >= len(c.side[1])-c.at[1] {
			break
		}
	}
	c.at = [2]int{len(c.side[0]), len(c.side[1])}
}

// skipStrangers skips, in a run of frees, those of equal sizes and of other
// allocations: they would look alike.
func (c *comparer) skipStrangers() {
	x, y := c.frees(0), c.frees(1)
	bySize := make(map[int64][]int)
	for j, r := range y {
		bySize[r.Size] = append(bySize[r.Size], j)
	}
	inX, inY := make([]bool, len(x)), make([]bool, len(y))
	for i, r := range x {
		if list := bySize[r.Size]; len(list) > 0 {
			inX[i], inY[list[0]], bySize[r.Size] = true, true, list[1:]
		}
	}
	n := partition(x, inX)
	partition(y, inY)
	c.at[0] += n
	c.at[1] += n
}

// kind is what must be equal for requests to match: the size, negative for a
// free, and 0 after the end of a trace.
type kind int64

// ahead returns the kinds of the next n requests, and of those that a meeting
// there needs.
func ahead(rest []AllocatorRequest, n int) []kind {
	end := min(n+meeting, len(rest))
	out := make([]kind, end, end+meeting)
	for i := range out {
		if out[i] = kind(rest[i].Size); rest[i].Free {
			out[i] = -out[i]
		}
	}
	if end == len(rest) {
		out = append(out, make([]kind, meeting)...)
	}
	return out
}

// gram is the kinds of a meeting. Runs of frees in it are sorted, since their
// order does not count.
type gram [meeting]kind

func gramAt(kinds []kind) gram {
	g := gram(kinds)
	for i := 0; i < meeting; i++ {
		from := i
		for i < meeting && g[i] < 0 {
			i++
		}
		slices.Sort(g[from:i])
	}
	return g
}

// meet returns the position from which both match, skipping as little as
// possible.
func meet(x, y []kind) (a, b int, ok bool) {
	at := make(map[gram]int)
	for j := range len(y) - meeting {
		g := gramAt(y[j:])
		if _, taken := at[g]; !taken {
			at[g] = j
		}
	}
	for i := range len(x) - meeting {
		if ok && i >= a+b {
			break
		}
		if j, found := at[gramAt(x[i:])]; found && (!ok || i+j < a+b) {
			a, b, ok = i, j, true
		}
	}
	return a, b, ok
}
