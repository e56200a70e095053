package timeline

import (
	"math"
	"slices"

	"memorymark/internal/trace"
)

// findMoments fills Moments and Peak. The index of active is a moment plus 1.
func (tl *Timeline) findMoments(active []int64, columns int) {
	tl.Moments = make([]int, columns)
	for c := range tl.Moments {
		start, end := tl.bounds(c)
		best := start
		for m := start + 1; m < end; m++ {
			if active[m+1] > active[best+1] {
				best = m
			}
		}
		tl.Moments[c] = best
		if c == 0 || active[best+1] > tl.Peak.Bytes {
			tl.Peak = Peak{Column: c, Event: best, Bytes: active[best+1]}
		}
	}
}

// bounds returns the moments of a column, the end excluded. There are never
// more columns than moments, so none is empty.
func (tl *Timeline) bounds(column int) (start, end int) {
	first, n, columns := tl.From-1, tl.To-tl.From+1, len(tl.Moments)
	return first + column*n/columns, first + (column+1)*n/columns
}

// reduce returns a line's range in each column, from its value before the first
// event and after each.
func (tl *Timeline) reduce(level []int64, before int64) Line {
	columns := len(tl.Moments)
	line := Line{Min: make([]int64, columns), Max: make([]int64, columns)}
	for c := range columns {
		start, end := tl.bounds(c)
		low, high := before, before
		if start >= 0 {
			low, high = level[start], level[start]
		}
		for _, n := range level[max(start, 0):end] {
			low, high = min(low, n), max(high, n)
		}
		line.Min[c], line.Max[c] = low, high
	}
	return line
}

// reduceLevel is reduce for a level that is unknown before the first event: one
// event is less than a picture shows. An empty level stays empty.
func (tl *Timeline) reduceLevel(level []int64) Line {
	if len(level) == 0 {
		return Line{}
	}
	return tl.reduce(level, level[0])
}

// longest is the longest plausible recording; times beyond it are ignored.
const longest = 10 * 365 * 24 * 3600 * 1_000_000

// clock fills Elapsed. Times that go back, as when a clock is set, stand still.
func (tl *Timeline) clock(t *trace.Trace) {
	first := slices.IndexFunc(t.Events, func(e trace.Event) bool { return e.Time > 0 })
	if first < 0 {
		return
	}
	var now int64
	tick := func(moment int) int64 {
		if time := t.Events[max(moment, 0)].Time; time > 0 {
			now = max(now, time-t.Events[first].Time)
		}
		return now
	}
	columns := len(tl.Moments)
	elapsed := make([]int64, columns+1)
	for c, moment := range tl.Moments {
		start, _ := tl.bounds(c)
		elapsed[c] = tick(start)
		if c == tl.Peak.Column {
			tl.Peak.Elapsed = tick(moment)
		}
	}
	elapsed[columns] = tick(tl.To - 1)
	if now > 0 && now <= longest {
		tl.Elapsed = elapsed
	}
}

// Tick is a round time on the x axis.
type Tick struct {
	Column int
	Micros int64 // since the first event
}

// TimeTicks returns round times, each at the column that first reaches it and
// at least gap columns from the others. Time does not run evenly along events:
// the roundest times are placed first, finer ones where there is space left. A
// time that a pause runs past is not placed after it.
func (tl *Timeline) TimeTicks(gap int) []Tick {
	if tl.Elapsed == nil {
		return nil
	}
	var ticks []Tick
	start, end := tl.Elapsed[0], tl.Elapsed[len(tl.Elapsed)-1]
	for _, step := range roundSteps(end) {
		if (end-start)/step > 1000 {
			break
		}
		for time := (start + step - 1) / step * step; time <= end; time += step {
			column, _ := slices.BinarySearch(tl.Elapsed, time)
			reached := tl.Elapsed[column]
			time = reached / step * step
			place, _ := slices.BinarySearchFunc(ticks, column, func(t Tick, c int) int { return t.Column - c })
			free := (place == 0 || column-ticks[place-1].Column >= gap) &&
				(place == len(ticks) || ticks[place].Column-column >= gap)
			if free && reached-time <= step/4 {
				ticks = slices.Insert(ticks, place, Tick{Column: column, Micros: time})
			}
		}
	}
	return ticks
}

// roundSteps returns 1, 2 and 5 times the powers of ten up to a time, the
// longest first.
func roundSteps(most int64) []int64 {
	var steps []int64
	for power := int64(1); power <= most && power < math.MaxInt64/10; power *= 10 {
		steps = append(steps, power, 2*power, 5*power)
	}
	slices.Reverse(steps)
	return steps
}
