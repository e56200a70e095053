package analysis

import (
	"maps"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/predict"
)

// Fitting is not monotonic: what earlier steps leave in the allocator's cache
// makes some batches fail that are smaller than some that fit. A batch that
// fits between two that fail owes it to chance, and a newer driver or a longer
// sample ends that. So what is recommended has neighbours that train, too.
const (
	// worthwhile is how much of the best throughput the recommended batch
	// reaches, where a safe one does.
	worthwhile = 0.95
	// safeBelow and safeAbove are how many neighbours of a safe batch train.
	safeBelow, safeAbove = 4, 2
	// spareShare is the share of the limit that is enough in place of the larger
	// neighbours: the next batch of a large model may be too large by far.
	spareShare = 1. / 32
	// farAway is after how many batches a walk takes longer steps.
	farAway = 16
)

// Recommendation is the batch worth using.
type Recommendation struct {
	Recommended int64 `json:"recommended_batch_size,omitempty"` // absent where nothing was timed
	// Tight says that no batch is safe: the recommended one fits, but leaves less than
	// the margin, or has neighbours that fail.
	Tight bool `json:"recommended_tight,omitempty"`
	// FailsBelow are batches below the optimal one that do not train.
	FailsBelow []Batches `json:"fails_below,omitempty"`
}

// recommend is the smallest safe batch whose throughput is close to that of the
// fastest that was looked at. Where none is both it is the fastest that is safe, and
// where none is safe the smallest that fits, which is tight.
func (p *planner) recommend(largest int64) (batch int64, tight bool, err error) {
	knee, err := p.knee(largest)
	if err != nil {
		return 0, false, err
	}
	best, err := p.look(p.fastest)
	if err != nil {
		return 0, false, err
	}
	unit, enough := p.unit(), worthwhile*best.SamplesPerSecond
	for batch := range walk(knee, unit, func(batch int64) bool { return batch <= largest }) {
		if safe, err := p.safe(batch); err != nil || safe && p.looked[batch].SamplesPerSecond >= enough {
			return batch, false, err
		}
		if p.w.Varied() && p.looked[batch].SamplesPerSecond < enough {
			break // the more samples, the more padding
		}
	}
	if batch, err = p.fastestSafe(knee - unit); err != nil || batch > 0 {
		return batch, false, err
	}
	if fits, err := p.fits(unit); fits || err != nil {
		return unit, true, err
	}
	return largest, true, nil
}

// fastestSafe is the present batch, or the largest that is safe from a batch downward,
// whichever is faster; 0 if neither is safe.
func (p *planner) fastestSafe(from int64) (fastest int64, err error) {
	for batch := range walk(from, -p.unit(), func(batch int64) bool { return batch > 0 }) {
		safe, err := p.safe(batch)
		if err != nil {
			return 0, err
		}
		if safe {
			fastest = batch
			break
		}
	}
	if p.w.Batch%p.unit() != 0 {
		return fastest, nil
	}
	safe, err := p.safe(p.w.Batch)
	if safe && p.looked[p.w.Batch].SamplesPerSecond > p.looked[fastest].SamplesPerSecond {
		return p.w.Batch, err
	}
	return fastest, err
}

// walk yields batches while they are within bounds: at first one after the
// other, then in longer and longer steps.
func walk(from, step int64, within func(int64) bool) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		for n := 1; within(from) && yield(from); n++ {
			if from += step; n >= farAway {
				step *= 2
			}
		}
	}
}

// safe reports whether a batch leaves the margin, and trains as its neighbours do.
// Instead of the larger ones, memory to spare will do.
func (p *planner) safe(batch int64) (bool, error) {
	if r, err := p.look(batch); r.Verdict != predict.Fits || err != nil {
		return false, err
	}
	for below := int64(1); below <= safeBelow && batch-below*p.unit() > 0; below++ {
		if fits, err := p.fits(batch - below*p.unit()); !fits || err != nil {
			return false, err
		}
	}
	for above := int64(1); above <= safeAbove; above++ {
		if fits, err := p.fits(batch + above*p.unit()); !fits || err != nil {
			return err == nil && p.spares(batch), err
		}
	}
	return true, nil
}

// spares reports whether a batch trains with a share of the limit to spare.
func (p *planner) spares(batch int64) bool {
	limit := p.limit()
	return p.run.FitsWithin(batch, limit-bytesize.Bytes(spareShare*float64(limit)))
}

// knee is about where throughput comes close to that of the fastest batch, which it
// notes: of powers of two, the present and the largest batch.
func (p *planner) knee(largest int64) (int64, error) {
	speed, err := p.speeds(largest)
	if err != nil {
		return 0, err
	}
	unit, best := p.unit(), 0.0
	rungs := p.rungs(largest)
	for _, batch := range rungs {
		if s := speed(batch); s > best {
			p.fastest, best = batch, s
		}
	}
	at := max(slices.IndexFunc(rungs, func(batch int64) bool { return speed(batch) >= worthwhile*best }), 0)
	if at == 0 || p.w.Varied() { // what is between rungs is not worth as many simulations
		return rungs[at], nil
	}
	low, high := rungs[at-1]/unit, rungs[at]/unit
	for low+1 < high {
		mid := (low + high) / 2
		if speed(mid*unit) >= worthwhile*best {
			high = mid
		} else {
			low = mid
		}
	}
	return high * unit, nil
}

// rungs are powers of two up to the largest batch, that, and the present one if it is
// among them.
func (p *planner) rungs(largest int64) []int64 {
	out := []int64{largest}
	for batch := p.unit(); batch < largest; batch *= 2 {
		out = append(out, batch)
	}
	if p.w.Batch < largest && p.w.Batch%p.unit() == 0 {
		out = append(out, p.w.Batch)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// speeds says how fast batches are up to the largest: by a line through two of them, or
// where they are of different lengths by their own steps; 0 for what does not train.
func (p *planner) speeds(largest int64) (func(batch int64) float64, error) {
	if p.w.Varied() {
		return func(batch int64) float64 {
			r, _ := p.look(batch) // an error is met again where it counts
			return r.SamplesPerSecond
		}, nil
	}
	return p.run.Speed(largest)
}

// Batches are all batches from one to another.
type Batches struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

const (
	steadyRun = 8  // consecutive batches that fit end a patch
	maxPatchy = 64 // batches that are looked at to describe one
)

// failsBelow are the batches below the largest that are known to fail, in
// runs. It looks at the next smaller ones, and further if one of them fails.
func (p *planner) failsBelow(largest int64) ([]Batches, error) {
	unit := p.unit()
	enough := safeBelow
	for run, n, batch := 0, 0, largest-unit; batch > 0 && run < enough && n < maxPatchy; n, batch = n+1, batch-unit {
		fits, err := p.fits(batch)
		if err != nil {
			return nil, err
		}
		if run++; !fits {
			run, enough = 0, steadyRun
		}
	}
	var out []Batches
	for _, batch := range slices.Sorted(maps.Keys(p.looked)) {
		if batch >= largest || p.looked[batch].Success {
			continue
		}
		if n := len(out); n > 0 && out[n-1].To == batch-unit {
			out[n-1].To = batch
		} else {
			out = append(out, Batches{batch, batch})
		}
	}
	return out, nil
}
