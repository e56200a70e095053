package engine

import (
	"context"
	"maps"
	"slices"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/search"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// cardOf is the card of a session: the one that is emulated, the catalog's entry
// of the device, or one made of what PyTorch says.
func cardOf(s *measure.Session) *gpu.Card {
	d := s.Device
	if s.Card != nil {
		return s.Card
	}
	if card, err := gpu.Find(d.Name); err == nil {
		return card
	}
	card := &gpu.Card{ID: "this-machine", Name: d.Name, SMs: d.SMs, ThreadsPerSM: d.ThreadsPerSM}
	card.Memory.Bytes = bytesize.Bytes(d.Total)
	if d.Type == "cuda" && d.Free > 0 {
		card.Context.Bytes = bytesize.Bytes(d.Total - d.Free)
	}
	_ = card.ComputeCapability.UnmarshalText([]byte(d.Capability)) // absent on a CPU
	return card
}

// Ahead is the predicted edge, worked out while PyTorch is being imported.
type Ahead struct {
	edge predictedEdge
	done chan struct{}
}

// LookAhead begins to predict where a request's edge will be.
func LookAhead(r analysis.Request) *Ahead {
	a := &Ahead{edge: predictedEdge{card: r.Card.ID, limit: int64(predict.Limit(r.Workload, r.Card) - r.Reserve)}, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.edge.predict(r.Workload, r.Card, r.MultipleOf, r.Work)
	}()
	return a
}

// predictedEdge is where memory is predicted to run out.
type predictedEdge struct {
	card    string
	limit   int64
	largest int64 // with the next batch failing; 1 if nothing is predicted
	island  int64 // a batch beyond that fits all the same, 0 if none does
}

// islandReach is how far above the edge larger batches are looked for.
const islandReach = 24

func (e *predictedEdge) predict(w *workload.Workload, card *gpu.Card, multipleOf int64, of *workbudget.Budget) {
	run, unit := predict.NewBatches(w.WithLimit(bytesize.Bytes(e.limit)), card, of), max(multipleOf, 1)
	found, err := run.Largest(search.Options{MultipleOf: multipleOf})
	if err != nil {
		e.largest = 1 // what cannot be predicted is searched from the bottom
		return
	}
	e.largest = found.Largest
	for batch := e.largest + islandReach*unit; batch > e.largest+unit; batch -= unit {
		if s, err := run.Process(batch); err == nil && s.Fits() {
			e.island = batch
			return
		}
	}
}

// predictedGuide guesses from predictions, put right by what was measured.
type predictedGuide struct {
	*bench
	edges map[int64]predictedEdge // by limit
}

// newPredictedGuide takes over what was predicted ahead, if that was for this
// card and limit.
func newPredictedGuide(ctx context.Context, b *bench) (*predictedGuide, error) {
	g := &predictedGuide{bench: b, edges: make(map[int64]predictedEdge)}
	if a := b.Ahead; a != nil && a.edge.card == b.Card.ID && a.edge.limit == b.Limit {
		select {
		case <-a.done:
			g.edges[b.Limit] = a.edge
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return g, nil
}

// edge predicts where a limit is reached, once.
func (g *predictedGuide) edge(limit int64) predictedEdge {
	e, ok := g.edges[limit]
	if !ok {
		e = predictedEdge{card: g.Card.ID, limit: limit}
		e.predict(g.Workload, g.Card, g.MultipleOf, g.Work)
		g.edges[limit] = e
	}
	return e
}

// guess is the largest batch that is predicted to fit. Once a batch was
// measured, the difference between its peak and the predicted one comes off
// the limit.
func (g *predictedGuide) guess(_ context.Context, fits, _ int64) int64 {
	limit := g.Limit
	if peaks, ok := g.peaks[fits]; ok {
		limit -= peaks.Allocated - g.predictedPeak(fits, peaks.Allocated)
	}
	return g.edge(limit).largest
}

// beyond is predicted for the edge that was predicted: elsewhere predictions
// are off anyway.
func (g *predictedGuide) beyond(edge int64) int64 {
	if e := g.edge(g.Limit); e.largest == edge {
		return e.island
	}
	return 0
}

// forecast is what was predicted of the largest batch.
func (g *predictedGuide) forecast(largest int64) *analysis.Forecast {
	f := &analysis.Forecast{OptimalBatch: g.edge(g.Limit).largest, OptimalMemory: g.predictedPeak(largest, 0)}
	if measured := g.peaks[largest].Allocated; f.OptimalMemory > 0 {
		f.ErrorPercent = figure.Round(100*float64(f.OptimalMemory-measured)/float64(measured), 3)
	}
	return f
}

// unlimited is more than any batch takes.
const unlimited bytesize.Bytes = 1 << 50

// predictedPeak is the predicted peak of a batch, the measured one if there is
// no prediction.
func (g *predictedGuide) predictedPeak(batch, measured int64) int64 {
	s, err := predict.NewBatches(g.Workload.WithLimit(unlimited), g.Card, g.Work).Process(batch)
	if err != nil {
		return measured
	}
	return int64(s.Peak().PeakAllocated)
}

// lineGuide guesses without predictions: what forward and backward hold is
// nearly a line in the batch. The optimizer's step holds as much whatever the
// batch, and is left out: small batches would look as if they took nothing.
type lineGuide struct {
	*bench
	refuted int   // guesses in a row that failed
	above   int64 // the batch that fitted before them
}

// trust is how many times as far as it was measured a line is believed: with
// small batches, parameters hide what a sample takes.
const trust = 16

// guess draws a line through the two largest batches that were measured, and
// measures two if there are none.
func (g *lineGuide) guess(ctx context.Context, fits, _ int64) int64 {
	points, fails := g.points()
	if len(points) < 2 && g.look(ctx, points, fails) {
		points, fails = g.points()
	}
	batches := slices.Sorted(maps.Keys(points))
	if len(batches) == 0 {
		return fits
	}
	high := batches[len(batches)-1]
	reach := trust * high
	if len(batches) > 1 {
		low := batches[len(batches)-2]
		if slope := float64(points[high]-points[low]) / float64(high-low); slope > 0 {
			reach = high + int64(min(float64(g.Limit-points[high])/slope, float64(reach-high)))
		}
	}
	if fails > high && reach >= fails {
		reach = g.backOff(high, fails)
	}
	return min(reach, g.maxInTime())
}

// backOff guesses where a batch failed that the line had fitting: an eighth of
// the way back to what fits, then a quarter, then half.
func (g *lineGuide) backOff(high, fails int64) int64 {
	if g.above != high {
		g.above, g.refuted = high, 0
	}
	share := int64(8) >> min(g.refuted, 2)
	g.refuted++
	return fails - max((fails-high)/share, 1)
}

// points are what forward and backward held at each batch that fitted, in the
// last step, with the unused part of what was reserved; and the smallest batch that did
// not fit, 0 if all did.
func (g *lineGuide) points() (points map[int64]int64, fails int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	points = make(map[int64]int64)
	for _, p := range g.Probes {
		if !p.Success {
			if fails == 0 || p.Batch < fails {
				fails = p.Batch
			}
			continue
		}
		last := p.Steps[len(p.Steps)-1]
		unused := max(last.PeakReserved-last.PeakAllocated, 0)
		points[p.Batch] = max(last.Phases["forward"].Allocated, last.Phases["backward"].Allocated) + unused
	}
	return points, fails
}

// look measures two small batches in one process, below what is known to fail,
// and reports whether there was anything to learn from that. What fails is
// found out again, and reported, by the probes that count.
func (g *lineGuide) look(ctx context.Context, points map[int64]int64, fails int64) bool {
	unit := max(g.MultipleOf, 1)
	small := max(g.Workload.Batch/unit, 1) * unit
	for fails > 0 && small > unit && 2*small >= fails {
		small = max(small/2/unit, 1) * unit
	}
	if _, known := points[small]; known || fails > 0 && small >= fails {
		return false
	}
	_, _ = g.probe(ctx, analysis.Guiding, measure.Probe{Batches: []int64{small, 2 * small}, Steps: 2})
	return true
}

func (g *lineGuide) beyond(int64) int64 { return 0 }
