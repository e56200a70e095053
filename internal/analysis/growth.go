package analysis

import (
	"sort"

	"memorymark/internal/bytesize"
	"memorymark/internal/predict"
)

// Growth is how the peak of allocated memory depends on the batch.
type Growth struct {
	// PeakPhase is the part of the step that takes the most at the optimal
	// batch: forward, backward or optimizer.
	PeakPhase string `json:"peak_phase,omitempty"`
	// FlatTo is the batch up to which the batch hardly matters: the peak stays
	// within 1 % of that of a single sample. 0 if it matters from the start.
	FlatTo     int64               `json:"flat_to_batch,omitempty"`
	FlatPhase  string              `json:"flat_phase,omitempty"`      // that takes the most there
	FlatPeak   int64               `json:"flat_peak_bytes,omitempty"` // of a single sample
	MemoryLine *predict.MemoryLine `json:"memory_line,omitempty"`
	// NextFailure is why the batch after the optimal one does not train.
	NextFailure *predict.OutOfMemory `json:"next_failure,omitempty"`
}

// hardly is a difference in memory that does not matter, as a share.
const hardly = 0.01

// growth looks at batches up to the largest.
func (p *planner) growth(largest int64) (g Growth, err error) {
	s, err := p.run.Process(largest)
	if err != nil {
		return g, err
	}
	g.PeakPhase = s.PeakPhase()
	if s, err = p.run.Process(largest + p.unit()); err != nil {
		return g, err
	}
	g.NextFailure = s.OutOfMemory()
	if g.FlatTo, err = p.flatTo(largest); err != nil {
		return g, err
	}
	if g.FlatTo > 0 {
		if s, err = p.run.Process(1); err != nil {
			return g, err
		}
		g.FlatPhase, g.FlatPeak = s.PeakPhase(), p.looked[1].Memory
	}
	g.MemoryLine, err = p.memoryLine(g.FlatTo, largest)
	return g, err
}

// flatTo is the last batch whose peak is about that of a single sample, 0 if
// that is the only one.
func (p *planner) flatTo(largest int64) (int64, error) {
	one, err := p.look(1)
	if err != nil {
		return 0, err
	}
	flat, err := p.first(1, largest+1, func(r Result) bool { return float64(r.Memory) > (1+hardly)*float64(one.Memory) })
	if flat -= 1; flat <= 1 {
		return 0, err
	}
	return flat, err
}

// memoryLine is the line of the larger half of the batches that fit, and from
// where it holds; nil if memory does not grow with those.
func (p *planner) memoryLine(flat, largest int64) (*predict.MemoryLine, error) {
	half := max(largest/2, 1)
	if flat > half {
		return nil, nil //nolint:nilnil // no line, and nothing wrong
	}
	line, err := p.run.MemoryLine(half)
	if line == nil || err != nil {
		return nil, err
	}
	holds := func(r Result) bool { return line.Holds(r.Batch, bytesize.Bytes(r.Memory)) }
	if line.From, err = p.first(max(flat, 1), half, holds); err != nil {
		return nil, err
	}
	// Peaks need not approach the line evenly, so a search may miss one that is
	// off it: the line begins after the last such batch that was looked at.
	for batch, r := range p.looked {
		if batch >= line.From && batch < half && !holds(r) {
			line.From = batch + 1
		}
	}
	return line, nil
}

// first is the first batch of a range that something is true of, its end if it
// is true of none before.
func (p *planner) first(from, end int64, is func(Result) bool) (int64, error) {
	var failed error
	n := sort.Search(int(end-from), func(i int) bool {
		r, err := p.look(from + int64(i))
		if err != nil {
			failed = err
		}
		return err != nil || is(r)
	})
	return from + int64(n), failed
}
