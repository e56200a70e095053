package analysis

import (
	"context"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/phantom"
)

// On an emulated card steps take no time that means anything. How long they
// would take is estimated from what they ask of the card.

// knowsTimes reports whether the time of steps can be predicted.
func (b *bench) knowsTimes() bool {
	return predictable(b.Request, b.User) && b.card.DenseTFLOPS.FP32 > 0
}

// lookAround runs the batches that an answer names beside the largest: the
// present one, and the one that is worth using. Of a model that is predicted
// that is known; of another some between are tried, and their speeds say it.
func (b *bench) lookAround(ctx context.Context, largest int64) (map[int64]Probe, error) {
	speeds, batches := make(map[int64]Probe), []int64{b.Workload.Batch}
	if !b.knowsTimes() {
		batches = append(batches, between(min(b.Workload.Batch, largest), largest)...)
	}
	for _, batch := range batches {
		if _, err := b.probe(ctx, looking, measure.Probe{Batches: []int64{batch}, Steps: confirmSteps}); err != nil {
			return nil, err
		}
	}
	if b.knowsTimes() {
		return speeds, b.lookWhereWorth(ctx, largest)
	}
	for _, p := range b.probes {
		if p.Success && p.SecondsPerStep > 0 {
			speeds[p.Batch] = p
		}
	}
	return speeds, nil
}

// lookWhereWorth runs the batch that is worth using by predicted speeds.
func (b *bench) lookWhereWorth(ctx context.Context, largest int64) error {
	p := plannerOf(b.Request, b.Workload.WithLimit(bytesize.Bytes(b.expect)), b.card)
	batch, tight, err := p.recommend(largest)
	if err != nil {
		return nil //nolint:nilerr // the largest batch is worth knowing without
	}
	if batch != largest && batch != b.Workload.Batch {
		if fits, err := b.confirm(ctx, batch); err != nil || !fits {
			return err
		}
	}
	b.worth = Recommendation{Recommended: batch, Tight: tight}
	return nil
}

// madeUp is what PyTorch did not decide by itself: how a model that is not
// modelled was built and fed, and values that no kernel computed.
type madeUp struct {
	notes   []string
	assumed []phantom.Assumption
}

// noteMadeUp remembers what a probe made up: each place once, with the most times.
func (b *bench) noteMadeUp(r *measure.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range r.Notes {
		if !slices.Contains(b.madeUp.notes, n) {
			b.madeUp.notes = append(b.madeUp.notes, n)
		}
	}
	for _, a := range r.Assumed {
		same := func(o phantom.Assumption) bool {
			return o.Function == a.Function && o.Where == a.Where && o.Assumed == a.Assumed
		}
		if i := slices.IndexFunc(b.madeUp.assumed, same); i >= 0 {
			b.madeUp.assumed[i].Times = max(b.madeUp.assumed[i].Times, a.Times)
		} else {
			b.madeUp.assumed = append(b.madeUp.assumed, a)
		}
	}
}

// explainEngine says why nothing was predicted, and what was made up instead.
func (b *bench) explainEngine(a *Answer) {
	a.Assumed = b.madeUp.assumed
	if why := b.Workload.Unmodelled; why != "" {
		a.note("engine", "%s, so that PyTorch ran it, %s", why, a.Engine)
	}
	for _, n := range b.madeUp.notes {
		a.note("engine", "%s", n)
	}
	if b.Session.Card != nil {
		for _, sentence := range evidence.EmulationAccuracy(a.GPUName, a.Provenance.PyTorch) {
			a.note(AboutAccuracy, "%s", sentence)
		}
	}
}
