package engine

import (
	"context"
	"errors"
	"fmt"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/plan"
)

// PlanEmulation runs the steps of a plan's trials on emulated cards. It calls Tell
// before each trial, with the card's name.
type PlanEmulation struct {
	Runner *Runner
	Ctx    context.Context
	Tell   func(card string, t change.Trial)
}

// On returns what runs the steps of a trial on a card.
func (p *PlanEmulation) On(card *gpu.Card) change.Prober {
	return p.Runner.FitProbe(p.Ctx, card, func(t change.Trial) { p.Tell(card.ID, t) })
}

// sketchMemory is more than any card has, and less than the emulator has addresses for.
const sketchMemory = 480 << 30

// sketchSteps are those of each batch: the first one makes the optimizer's state.
const sketchSteps = 2

// Sketch runs batches of a trial one after the other in one process, up to the first
// that does not fit.
func (p *PlanEmulation) Sketch(t change.Trial, card *gpu.Card, batches []int64) (sketch *plan.Sketch, err error) {
	p.Tell("a card without a limit", t)
	large := *card
	large.ID, large.Name, large.Memory.Bytes = card.ID+" with 480 GiB", card.Name+" with 480 GiB", sketchMemory
	q := analysis.Request{Workload: t.Workload, Card: &large}
	probe := measure.Probe{Workload: t.Workload, Batches: batches, Steps: sketchSteps}
	err = p.Runner.steps(p.Ctx, evidence.Emulated, q, Measurement{}, 0, func(m Measurement) error {
		found, err := m.Session.Probe(p.Ctx, probe, nil)
		if err != nil {
			return err
		}
		sketch, err = newSketch(found)
		if err != nil {
			return err
		}
		ran := fmt.Sprintf("%s, so that PyTorch %s ran it on emulated cards", t.Workload.Unmodelled, m.Session.Versions.Torch)
		sketch.Notes = append([]string{ran}, append(assumedNotes(found.Assumed), found.Notes...)...)
		sketch.Notes = append(sketch.Notes, evidence.EmulationAccuracy(evidence.EmulatedGPU, m.Session.Versions.Torch)...)
		return nil
	})
	return sketch, err
}

func newSketch(found *measure.ProbeResult) (*plan.Sketch, error) {
	out := &plan.Sketch{Parameters: found.Parameters, Batches: make(map[int64]plan.SketchedBatch)}
	for _, o := range found.Outcomes {
		switch {
		case o.Failure == nil && o.SecondsPerStep == 0:
			return nil, errors.New("how long its steps take is not known")
		case o.Failure == nil:
			out.Batches[o.Batch] = plan.SketchedBatch{Allocated: bytesize.Bytes(o.Peaks().Allocated), Work: o.Estimated}
		case !o.Failure.TooBig():
			return nil, o.Failure
		}
	}
	return out, nil
}
