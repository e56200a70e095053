package engine

import (
	"context"
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/steptime"
	"memorymark/internal/study"
	"memorymark/internal/trace"
)

// Emulate runs three steps of a workload's batch on a card that is not there.
// The whole process is recorded to a path, unless that is empty.
func (r *Runner) Emulate(ctx context.Context, q analysis.Request, user *measure.UserModel, path string) (p *analysis.Prediction, err error) {
	record, remove, err := processRecord(path)
	if err != nil {
		return nil, err
	}
	defer remove()
	probe := measure.Probe{
		Workload: q.Workload, User: user, Batches: []int64{q.Workload.Batch}, Steps: confirmSteps, Limit: int64(q.Workload.Limit()), Record: record,
	}
	err = r.steps(ctx, evidence.Emulated, q, Measurement{User: user}, 0, func(m Measurement) error {
		found, err := m.Session.Probe(ctx, probe, nil)
		if err == nil {
			p, err = newPrediction(q, m, found)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t, err := readRecording(record.Path)
	switch {
	case err != nil && p.Fits:
		return nil, err
	case err == nil && p.Fits:
		p.Breakdown = predict.RecordedBreakdown(t, study.Classified(q.Workload, t), p.Steps, q.Card.Context.Bytes)
	case err == nil:
		p.OutOfMemory = outOfMemory(p, t)
	}
	return p, nil
}

func newPrediction(q analysis.Request, m Measurement, found *measure.ProbeResult) (*analysis.Prediction, error) {
	o := &found.Outcomes[0]
	if o.Failure != nil && !o.Failure.TooBig() {
		return nil, o.Failure
	}
	w := *q.Workload
	w.GPU = q.Card.ID // named or not
	p := &analysis.Prediction{Prediction: predict.Prediction{
		ID: w.ID, Engine: evidence.Emulated, Fits: o.Failure == nil, Steps: []allocator.Usage{}, PeakPhase: peakPhase(o.Steps),
		Parameters: found.Parameters, ModelAllocated: bytesize.Bytes(found.ModelAllocated),
		Workload: &w, GPU: q.Card.ID, GPUTotal: q.Card.Memory.Bytes, Limit: predict.Limit(&w, q.Card), Card: q.Card,
		Caveats: predict.Caveats(&w, q.Card),
	}, Emulation: &analysis.Emulation{
		ModelName: m.nameOf(q.Workload), GPUName: q.Card.Name, Because: w.Unmodelled, Failure: o.Failure, Versions: &m.Session.Versions,
		Notes: found.Notes, Assumed: found.Assumed, AccuracyNotes: evidence.EmulationAccuracy(q.Card.Name, m.Session.Versions.Torch),
	}}
	for _, s := range o.Steps {
		p.Steps = append(p.Steps, allocator.Usage{
			PeakRequested: bytesize.Bytes(s.PeakRequested), PeakAllocated: bytesize.Bytes(s.PeakAllocated),
			PeakReserved: bytesize.Bytes(s.PeakReserved), EndAllocated: bytesize.Bytes(s.EndAllocated),
		})
	}
	if p.Fits && o.SecondsPerStep > 0 {
		speed := q.Throughput(o.Batch, o.SecondsPerStep)
		p.StepSeconds, p.SamplesPerSecond, p.TokensPerSecond = o.SecondsPerStep, speed.SamplesPerSecond, speed.TokensPerSecond
		r := o.Estimated.Range(q.Card)
		p.StepRange, p.StepCompared, p.TimeAccuracy = &r, steptime.Compared(q.Card), &steptime.Stated
	}
	p.Judge()
	return p, nil
}

// outOfMemory is the request that failed, as it was recorded; nil if none was:
// a kernel may have been asked for too much instead.
func outOfMemory(p *analysis.Prediction, t *trace.Trace) *predict.OutOfMemory {
	replay, err := allocator.NewReplay(t, 0, allocator.Levels{})
	if err != nil {
		return nil
	}
	for i, e := range slices.Backward(t.Events) {
		if e.Action == trace.OutOfMemory {
			held := allocator.Fragment(replay.HeldAfter(i))
			out := &predict.OutOfMemory{
				Step: p.Failure.Step, Requested: bytesize.Bytes(e.Size),
				Allocated: bytesize.Bytes(held.Allocated), Reserved: bytesize.Bytes(held.Reserved), Limit: p.Limit,
			}
			if out.Step > 0 {
				out.Phase = p.Failure.Phase
			}
			return out
		}
	}
	return nil
}

// peakPhase is the part of a step that takes the most.
func peakPhase(steps []measure.Step) string {
	name, most := "", int64(0)
	for _, s := range steps {
		for _, phase := range []string{trace.ForwardMark, trace.BackwardMark, trace.OptimizerMark} {
			if peak := s.Phases[phase].Allocated; peak > most {
				name, most = phase, peak
			}
		}
	}
	return name
}
