package allocator

import "slices"

// gapList is unused address space, the latest region first and then
// by address: the first gap that holds a segment is where it goes. Like a
// freeSet it is a list of short runs, and knows the largest gap of each: a
// hundred thousand gaps that are too small are passed over quickly.
type gapList struct {
	runs    [][]span // none is empty
	largest []int64  // by run
}

// before reports whether a gap comes before a position.
func (s span) before(region int, addr uint64) bool {
	return s.region > region || s.region == region && s.addr < addr
}

// take cuts size bytes off the first gap that holds them.
func (l *gapList) take(size int64) (s span, ok bool) {
	for r, most := range l.largest {
		if most >= size {
			i := slices.IndexFunc(l.runs[r], func(g span) bool { return g.size >= size })
			return l.cut(r, i, size), true
		}
	}
	return span{}, false
}

// remains takes a gap out of the list if it is there as a whole.
func (l *gapList) remains(whole span) bool {
	r, i := l.find(whole.region, whole.addr)
	if r == len(l.runs) || l.runs[r][i] != whole {
		return false
	}
	l.remove(r, i)
	return true
}

// takeIn cuts size bytes off the first gap of a region, which holds them.
func (l *gapList) takeIn(region int, size int64) span {
	if size == 0 {
		return span{}
	}
	r, i := l.find(region, 0)
	return l.cut(r, i, size)
}

func (l *gapList) cut(r, i int, size int64) span {
	g := &l.runs[r][i]
	s := span{g.region, g.addr, size}
	g.addr += uint64(size)
	if g.size -= size; g.size == 0 {
		l.remove(r, i)
	} else {
		l.measure(r)
	}
	return s
}

// add puts a gap into the list and joins it with those that it touches.
func (l *gapList) add(g span) {
	r, i := l.find(g.region, g.addr)
	if r < len(l.runs) {
		if next := l.runs[r][i]; next.region == g.region && g.addr+uint64(g.size) == next.addr {
			g.size += next.size
			l.remove(r, i)
			r, i = l.find(g.region, g.addr)
		}
	}
	switch { // to what is before it
	case i > 0:
		i--
	case r > 0:
		r, i = r-1, len(l.runs[r-1])-1
	default:
		l.insert(0, 0, g)
		return
	}
	if before := &l.runs[r][i]; before.region == g.region && before.addr+uint64(before.size) == g.addr {
		before.size += g.size
		l.measure(r)
		return
	}
	l.insert(r, i+1, g)
}

// find returns the run and the index of the first gap that is not before a
// position.
func (l *gapList) find(region int, addr uint64) (r, i int) {
	r, _ = slices.BinarySearchFunc(l.runs, false, func(run []span, _ bool) int {
		return order(run[len(run)-1], region, addr)
	})
	if r < len(l.runs) {
		i, _ = slices.BinarySearchFunc(l.runs[r], false, func(g span, _ bool) int { return order(g, region, addr) })
	}
	return r, i
}

func order(g span, region int, addr uint64) int {
	if g.before(region, addr) {
		return -1
	}
	return 1
}

func (l *gapList) insert(r, i int, g span) {
	if r == len(l.runs) {
		l.runs, l.largest = append(l.runs, nil), append(l.largest, 0)
	}
	l.runs[r] = slices.Insert(l.runs[r], i, g)
	if run := l.runs[r]; len(run) > runLength {
		half := len(run) / 2
		l.runs = slices.Insert(l.runs, r+1, slices.Clone(run[half:]))
		l.largest = slices.Insert(l.largest, r+1, 0)
		l.runs[r] = run[:half:half]
		l.measure(r + 1)
	}
	l.measure(r)
}

func (l *gapList) remove(r, i int) {
	l.runs[r] = slices.Delete(l.runs[r], i, i+1)
	if len(l.runs[r]) > 0 {
		l.measure(r)
		return
	}
	l.runs = slices.Delete(l.runs, r, r+1)
	l.largest = slices.Delete(l.largest, r, r+1)
}

// measure finds the largest gap of a run again.
func (l *gapList) measure(r int) {
	l.largest[r] = 0
	for _, g := range l.runs[r] {
		l.largest[r] = max(l.largest[r], g.size)
	}
}
