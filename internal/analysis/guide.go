package analysis

import (
	"context"
	"maps"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/search"
	"memorymark/internal/workload"
)

// cardOf is the catalog's entry of a device, or one made of what PyTorch says.
func cardOf(d measure.Device) *gpu.Card {
	if card, err := gpu.Find(d.Name); err == nil {
		return card
	}
	card := &gpu.Card{ID: "this-machine", Name: d.Name, SMs: d.SMs, ThreadsPerSM: d.ThreadsPerSM}
	card.Memory.Bytes = bytesize.Bytes(d.Total)
	if d.Free > 0 {
		card.Context.Bytes = bytesize.Bytes(d.Total - d.Free)
	}
	_ = card.ComputeCapability.UnmarshalText([]byte(d.Capability)) // absent on a CPU
	return card
}

// predictedGuide guesses from predictions, put right by what was measured.
type predictedGuide struct {
	*bench
	edges map[int64]int64 // by limit
}

func newPredictedGuide(b *bench) *predictedGuide {
	return &predictedGuide{bench: b, edges: make(map[int64]int64)}
}

// guess is the largest batch that is predicted to fit. Once a batch was
// measured, the difference between its peak and the predicted one comes off
// the limit.
func (g *predictedGuide) guess(_ context.Context, fits, _ int64) int64 {
	limit := g.expect
	if peaks, ok := g.peaks[fits]; ok {
		limit -= peaks.Allocated - g.predictedPeak(fits, peaks.Allocated)
	}
	if edge, ok := g.edges[limit]; ok {
		return edge
	}
	edge := int64(1) // what cannot be predicted is searched from the bottom
	if found, err := g.runner(limit).Largest(search.Options{MultipleOf: g.MultipleOf}); err == nil {
		edge = found.Largest
	}
	g.edges[limit] = edge
	return edge
}

// predictedPeak is the predicted peak of a batch, the measured one if there is
// no prediction.
func (g *predictedGuide) predictedPeak(batch, measured int64) int64 {
	s, err := g.runner(1 << 60).Simulate(batch)
	if err != nil {
		return measured
	}
	return int64(s.Peak().PeakAllocated)
}

func (g *predictedGuide) runner(limit int64) *predict.Runner {
	return predict.NewRunner(underLimit(g.Workload, limit), g.card)
}

func underLimit(w *workload.Workload, limit int64) *workload.Workload {
	limited := *w
	limited.LimitGiB = float64(limit) / float64(bytesize.GiB)
	return &limited
}

// islandReach is how far above the edge larger batches are looked for.
const islandReach = 24

// beyond is the largest batch a little above the edge that is predicted to
// fit.
func (g *predictedGuide) beyond(edge int64) int64 {
	run, unit := g.runner(g.expect), max(g.MultipleOf, 1)
	for batch := edge + islandReach*unit; batch > edge+unit; batch -= unit {
		if s, err := run.Simulate(batch); err == nil && s.Fits() {
			return batch
		}
	}
	return 0
}

// lineGuide guesses without predictions: memory is nearly a line in the batch.
type lineGuide struct{ *bench }

// guess draws a line through the two largest batches that were measured, and
// measures two if there are none. A batch below which the optimizer's step is
// the peak says nothing of the slope, so a flat line only says "much larger".
func (g *lineGuide) guess(ctx context.Context, fits, fails int64) int64 {
	if len(g.peaks) < 2 {
		g.look(ctx, fails)
	}
	batches := slices.Sorted(maps.Keys(g.peaks))
	if len(batches) < 2 {
		return fits
	}
	low, high := batches[len(batches)-2], batches[len(batches)-1]
	slope := float64(g.held(high)-g.held(low)) / float64(high-low)
	if slope <= 0 {
		return 4 * high
	}
	reach := high + int64(float64(g.expect-g.held(high))/slope)
	// Far beyond what was measured a line is not to be trusted.
	return min(reach, 16*high)
}

func (g *lineGuide) held(batch int64) int64 {
	return max(g.peaks[batch].Allocated, g.peaks[batch].Reserved)
}

// look measures two small batches in one process. What fails is found out
// again, and reported, by the probes that count.
func (g *lineGuide) look(ctx context.Context, fails int64) {
	unit := max(g.MultipleOf, 1)
	small := max(g.Workload.Batch/unit, 1) * unit
	for fails > 0 && small > unit && 2*small >= fails {
		small = max(small/2/unit, 1) * unit
	}
	_, _ = g.probe(ctx, guiding, measure.Probe{Batches: []int64{small, 2 * small}, Steps: 2})
}

func (g *lineGuide) beyond(int64) int64 { return 0 }
