package engine

import (
	"context"
	"slices"

	"memorymark/internal/analysis"
	"memorymark/internal/measure"
)

// timedSteps are timed at each batch, after two that warm up.
const timedSteps = 12

// refinements are how many batches more are timed to find the knee.
const refinements = 2

// speeds times batches up to the largest: the present one, the largest, some
// between, and more where throughput comes within 5 % of the best. They run in
// one process, but the largest in one of its own: it has no memory to spare
// for what others leave.
func (b *bench) speeds(ctx context.Context, largest int64) (map[int64]analysis.Probe, error) {
	if b.Session.Card != nil {
		return b.lookAround(ctx, largest)
	}
	speeds := make(map[int64]analysis.Probe)
	current := b.Workload.Batch
	if b.NoTiming {
		_, err := b.probe(ctx, analysis.Looking, measure.Probe{Batches: []int64{current}, Steps: 2})
		return speeds, err
	}
	batches := analysis.Between(min(current, largest), largest)
	if knee := b.predictedKnee(largest); knee > 0 && knee < largest {
		batches = append(batches, knee)
	}
	if current < largest {
		batches = append(batches, current)
	}
	slices.Sort(batches)
	if err := b.time(ctx, speeds, slices.Compact(batches)...); err != nil {
		return nil, err
	}
	if err := b.time(ctx, speeds, largest); err != nil {
		return nil, err
	}
	if current > largest {
		if _, err := b.confirm(ctx, current); err != nil {
			return nil, err
		}
	}
	for range refinements {
		knee, below := b.Knee(speeds)
		if unit := max(b.MultipleOf, 1); knee-below <= max(unit, knee/8) {
			break
		}
		mid := (knee + below) / 2
		if unit := max(b.MultipleOf, 1); unit > 1 {
			mid = mid / unit * unit
		}
		if err := b.time(ctx, speeds, mid); err != nil {
			return nil, err
		}
	}
	return speeds, nil
}

// time times batches in one process. Those that failed there, and those that
// did not get their turn, get processes of their own.
func (b *bench) time(ctx context.Context, speeds map[int64]analysis.Probe, batches ...int64) error {
	if len(batches) == 0 {
		return nil
	}
	probes, err := b.probe(ctx, analysis.Timing, measure.Probe{Batches: batches, Steps: 2, Timed: timedSteps})
	if err != nil {
		return err
	}
	for _, p := range probes {
		if p.Success {
			speeds[p.Batch] = p
		}
	}
	for _, batch := range batches {
		if _, ok := speeds[batch]; !ok && len(batches) > 1 {
			if err := b.time(ctx, speeds, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

// predictedKnee is where the time model has it, 0 if it does not know.
func (b *bench) predictedKnee(largest int64) int64 {
	if !b.knowsTimes() {
		return 0
	}
	knee, err := analysis.PredictedKnee(b.Request, largest)
	if err != nil {
		return 0
	}
	return knee
}
