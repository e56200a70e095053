package trace

import "slices"

// This file finds where two traces meet again after a difference. Identities
// do not help there, so requests are alike if they are of one kind and size.

// meeting is how many requests in a row must be alike for two traces to have
// met again; fewer can be by chance.
const meeting = 8

// windows are how far ahead a meeting is looked for, in requests. What is near
// is tried first, so that what a search costs is in proportion to what it
// skips.
var windows = []int{64, 1 << 10, 1 << 14, 1 << 18}

// skip goes on to the nearest place from which both traces are alike, or to
// the end if there is none.
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

// kind is what makes a request like another: its size, negative for a free,
// and 0 after the end of a trace.
type kind int64

// ahead returns the kinds of the next n requests, and of those that a meeting
// there takes.
func ahead(rest []Request, n int) []kind {
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

// meet returns the place at which both go on alike for which the least is
// skipped.
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
