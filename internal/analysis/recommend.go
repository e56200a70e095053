package analysis

import (
	"maps"
	"slices"

	"memorymark/internal/bytesize"
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
	// Tight says that no batch has neighbours that train, or memory to spare:
	// the recommended one fits, but not by much.
	Tight bool `json:"recommended_tight,omitempty"`
	// FailsBelow are batches below the optimal one that do not train.
	FailsBelow []Batches `json:"fails_below,omitempty"`
}

// recommend is the smallest safe batch whose throughput is close to that of
// the largest. Where none is both it is the fastest that is safe, and where
// none is safe the smallest that fits, which is tight.
func (p *planner) recommend(largest int64) (batch int64, tight bool, err error) {
	knee, err := p.knee(largest)
	if err != nil {
		return 0, false, err
	}
	best, err := p.look(largest)
	if err != nil {
		return 0, false, err
	}
	unit, enough := p.unit(), worthwhile*best.SamplesPerSecond
	for batch := range walk(knee, unit, func(batch int64) bool { return batch <= largest }) {
		if safe, err := p.safe(batch); err != nil || safe && p.looked[batch].SamplesPerSecond >= enough {
			return batch, false, err
		}
	}
	for batch := range walk(knee-unit, -unit, func(batch int64) bool { return batch > 0 }) {
		if safe, err := p.safe(batch); safe || err != nil {
			return batch, false, err
		}
	}
	if fits, err := p.fits(unit); fits || err != nil {
		return unit, true, err
	}
	return largest, true, nil
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

// safe reports whether a batch and its neighbours train. Instead of the larger
// ones, memory to spare will do.
func (p *planner) safe(batch int64) (bool, error) {
	for below := int64(0); below <= safeBelow && batch-below*p.unit() > 0; below++ {
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

// knee is about where throughput comes close to that of the largest batch.
// It grows with the batch but for steps in between, so that is the best.
func (p *planner) knee(largest int64) (int64, error) {
	speed, err := p.run.Speed(largest)
	if err != nil {
		return 0, err
	}
	unit := p.unit()
	enough := worthwhile * speed.SamplesPerSecond(largest)
	low, high := int64(0), largest/unit
	for low+1 < high {
		mid := (low + high) / 2
		if speed.SamplesPerSecond(mid*unit) >= enough {
			high = mid
		} else {
			low = mid
		}
	}
	return high * unit, nil
}

// Batches are all batches from one to another.
type Batches struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

const (
	steadyRun  = 8  // so many batches that fit in a row end a patch
	mostPatchy = 64 // no more batches are looked at to describe one
)

// failsBelow are the batches below the largest that are known to fail, in
// runs. It looks at the next smaller ones, and further if one of them fails.
func (p *planner) failsBelow(largest int64) ([]Batches, error) {
	unit := p.unit()
	enough := safeBelow
	for run, n, batch := 0, 0, largest-unit; batch > 0 && run < enough && n < mostPatchy; n, batch = n+1, batch-unit {
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
