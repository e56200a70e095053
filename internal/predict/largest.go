package predict

import (
	"math"

	"memorymark/internal/allocator"
	"memorymark/internal/search"
)

// maxBatch bounds the search: no step of a billion samples is of interest.
const maxBatch = 1 << 30

// Largest finds the largest batch that trains: three steps in a fresh process,
// on the simulated allocator, under the card's or the workload's limit.
//
// Fitting is not monotonic: what the first step leaves in the cache makes some
// sizes fail that are smaller than some that fit. So the search goes in two
// stages. Where a settled process runs out of memory is a clear edge; from
// there the answer is the next smaller size that survives a fresh process,
// while one more does not.
func (b *Batches) Largest(o search.Options) (*search.Found, error) {
	if o.Most == 0 {
		o.Most = maxBatch
	}
	if o.Start == 0 {
		settled, err := b.settledEdge(o)
		if err != nil {
			return nil, err
		}
		o.Start = max(settled, 1)
	}
	return search.NearestBelow(func(batch int64) (bool, error) { return b.fits(batch, Limit(b.w, b.card)) }, o)
}

// settledEdge is the largest batch whose steps fit once the process has
// settled, found by bisecting between powers of two, as people do by hand.
func (b *Batches) settledEdge(o search.Options) (int64, error) {
	line, err := b.line()
	if err != nil {
		return 0, err
	}
	limit := float64(Limit(b.w, b.card))
	found, err := search.Bisect(func(batch int64) (bool, error) {
		// Far from the edge the line is enough: fragmentation adds little to a
		// settled process, and nothing takes away from what is allocated.
		switch share := line.at(batch) / limit; {
		case share < 0.85:
			return true, nil
		case share > 1.03:
			return false, nil
		}
		p, err := b.program(variant{batch: batch})
		if err != nil {
			return false, err
		}
		s := Process{program: p, batches: b}
		out, err := allocator.PlaySettled(p.requests(), s.options(Limit(b.w, b.card)), p.partEnds(), stepPart+1)
		return err == nil && out.Fits(), err
	}, search.Options{Start: line.reaches(limit), Most: o.Most, MultipleOf: o.MultipleOf})
	if err != nil {
		return 0, err
	}
	return found.Largest, nil
}

// batchPeak is the peak of allocated memory at a batch.
type batchPeak struct {
	batch int64
	bytes float64
}

// peakLine is the peak of allocated memory against the batch, through two of
// them.
type peakLine struct {
	batchPeak
	slope float64
}

func lineThrough(small, large batchPeak) peakLine {
	return peakLine{large, (large.bytes - small.bytes) / float64(large.batch-small.batch)}
}

func (l peakLine) at(batch int64) float64 { return l.bytes + l.slope*float64(batch-l.batch) }

// reaches is the batch at which the line reaches an amount, at least 1.
func (l peakLine) reaches(bytes float64) int64 {
	switch {
	case l.slope > 0:
		return int64(min(max((bytes-l.bytes)/l.slope+float64(l.batch), 1), maxBatch))
	case l.bytes > bytes:
		return 1
	default:
		return maxBatch
	}
}

const (
	// nearby is how far from where memory runs out a line may be drawn, as a share.
	nearby = 0.2
	// maxLonger is how many times as large as the last one the next batch may be.
	maxLonger = 16
)

// line draws the line near where memory runs out. Allocated memory is nearly a
// line in the batch, but only beyond the batches at which the optimizer's step
// is the peak, which does not know the batch. So the line is drawn through a
// batch that is below the limit and one that is above it, until they are close.
// Where the optimizer's step takes nearly all there is, lines end far below
// where memory runs out; then it is halved between the two.
func (b *Batches) line() (peakLine, error) {
	limit := float64(Limit(b.w, b.card))
	small, err := b.allocated(8)
	if err != nil {
		return peakLine{}, err
	}
	large, err := b.allocated(64)
	for halve := false; err == nil; halve = !halve {
		l := lineThrough(small, large)
		runsOut := l.reaches(limit)
		switch {
		case l.slope > 0 && isNear(runsOut, large.batch), small.bytes > limit && large.bytes > limit, large.batch == maxBatch:
			return l, nil
		case large.bytes <= limit: // further on
			small = large
			large, err = b.allocated(min(above(runsOut), maxLonger*large.batch, maxBatch))
			continue
		}
		between := above(runsOut)
		if halve {
			between = int64(math.Sqrt(float64(small.batch) * float64(large.batch)))
		}
		var next batchPeak
		if next, err = b.allocated(min(max(between, small.batch+1), large.batch-1)); next.bytes > limit {
			large = next
		} else {
			small = next
		}
	}
	return peakLine{}, err
}

// isNear reports whether two batches differ little.
func isNear(a, b int64) bool {
	return float64(a) >= (1-nearby)*float64(b) && float64(b) >= (1-nearby)*float64(a)
}

// above is a batch that is near another and a little larger.
func above(batch int64) int64 { return batch + max(batch/10, 1) }

// allocated is the peak of allocated memory at a batch, without a limit.
func (b *Batches) allocated(batch int64) (batchPeak, error) {
	out, err := b.play(variant{batch: batch}, noLimit)
	if err != nil {
		return batchPeak{}, err
	}
	return batchPeak{batch, float64(out.PeakAllocated)}, nil
}
