package engine

import (
	"context"
	"fmt"
	"slices"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/emulate"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
)

// The times of steps on an emulated card mean nothing. How long they would take is
// estimated from the work that they give to the card.

// knowsTimes reports whether the time of steps can be predicted.
func (b *bench) knowsTimes() bool {
	return predictable(b.Request, b.User) && b.Card.DenseTFLOPS.FP32 > 0
}

// lookAround runs the batches that an answer names in addition to the largest: the
// present one, and the one that is worth using. Of a model that is predicted
// that is known; of another some between are tried, and their speeds say it.
func (b *bench) lookAround(ctx context.Context, largest int64) (map[int64]analysis.Probe, error) {
	speeds, batches := make(map[int64]analysis.Probe), []int64{b.Workload.Batch}
	if !b.knowsTimes() {
		batches = append(batches, analysis.Between(min(b.Workload.Batch, largest), largest)...)
	}
	for _, batch := range batches {
		if _, err := b.probe(ctx, analysis.Looking, measure.Probe{Batches: []int64{batch}, Steps: confirmSteps}); err != nil {
			return nil, err
		}
	}
	if b.knowsTimes() {
		return speeds, b.lookWhereWorth(ctx, largest)
	}
	for _, p := range b.Probes {
		if p.Success && p.SecondsPerStep > 0 {
			speeds[p.Batch] = p
		}
	}
	return speeds, nil
}

// lookWhereWorth runs the batch that is worth using by predicted speeds.
func (b *bench) lookWhereWorth(ctx context.Context, largest int64) error {
	worth, err := analysis.PredictedRecommendation(b.Request, bytesize.Bytes(b.Limit), largest)
	if err != nil {
		return nil //nolint:nilerr // the largest batch is worth knowing without
	}
	if batch := worth.Recommended; batch != largest && batch != b.Workload.Batch {
		if fits, err := b.confirm(ctx, batch); err != nil || !fits {
			return err
		}
	}
	b.Recommendation = worth
	return nil
}

// keepAssumed keeps what PyTorch did not decide by itself: how a model that is not
// modelled was built and fed, and values that no kernel computed. Each is kept once,
// with the largest number of times that a probe needed it.
func (b *bench) keepAssumed(r *measure.ProbeResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range r.Notes {
		if !slices.Contains(b.EngineNotes, n) {
			b.EngineNotes = append(b.EngineNotes, n)
		}
	}
	for _, a := range r.Assumed {
		same := func(o emulate.Assumption) bool {
			return o.Function == a.Function && o.Where == a.Where && o.Assumed == a.Assumed
		}
		if i := slices.IndexFunc(b.Assumed, same); i >= 0 {
			b.Assumed[i].Times = max(b.Assumed[i].Times, a.Times)
		} else {
			b.Assumed = append(b.Assumed, a)
		}
	}
}

// explainEngine says why nothing was predicted, before what was assumed instead, and
// how accurate emulation is.
func (b *bench) explainEngine() {
	if why := b.Workload.Unmodelled; why != "" {
		b.EngineNotes = slices.Insert(b.EngineNotes, 0, fmt.Sprintf("%s, so that PyTorch ran it, %s", why, b.Engine))
	}
	if b.Session.Card != nil {
		b.AccuracyNotes = evidence.EmulationAccuracy(b.Device.Name, b.Versions.Torch)
	}
}
