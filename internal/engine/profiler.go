package engine

import (
	"context"
	"os"
	"time"

	"memorymark/internal/allocator"
	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/study"
	"memorymark/internal/trace"
)

// Profiler profiles the cells of a study by running them.
type Profiler struct {
	Session  *measure.Session
	Progress func(measure.StepProgress) // called after each step; may be nil
}

// profileTimed are the steps that are timed after those that are recorded,
// which recording slows down.
const profileTimed = 6

// Engine implements study.Profiler.
func (p *Profiler) Engine() evidence.Engine { return p.Session.Engine() }

// Profile implements study.Profiler.
func (p *Profiler) Profile(ctx context.Context, c study.Cell) (*study.Profile, error) {
	probe := measure.Probe{
		Workload: c.Workload, Batches: []int64{c.Workload.Batch}, Steps: c.Steps, Warmup: c.Warmup, Timed: profileTimed,
		Limit: int64(c.Workload.Limit()),
	}
	if p.Session.Card != nil {
		probe.Timed = 0 // nothing takes its time there
	}
	if p.Session.Device.Type == "cuda" {
		record, remove, err := scratchRecord(measure.StepsOnly, "snapshot.pickle", studyEntries)
		if err != nil {
			return nil, err
		}
		defer remove()
		probe.Record = record
	}
	found, err := p.Session.Probe(ctx, probe, p.Progress)
	if err != nil {
		return nil, err
	}
	o := &found.Outcomes[0]
	if o.Failure != nil && !o.Failure.TooBig() {
		return nil, o.Failure
	}
	profile := &study.Profile{Phases: phases(o), Provenance: p.provenance()}
	if o.SecondsPerStep > 0 {
		profile.StepSeconds = []float64{o.SecondsPerStep}
	}
	if f := o.Failure; f != nil {
		profile.OutOfMemory = &study.OutOfMemory{Phase: f.Phase, Reserved: bytesize.Bytes(f.Reserved), Limit: bytesize.Bytes(probe.Limit)}
	}
	if o.Recording != "" {
		if profile.Trace, err = readRecording(o.Recording); err != nil {
			return nil, err
		}
	}
	return profile, nil
}

// emulatingProfiler profiles cells on cards that are not there: each on its own.
type emulatingProfiler struct{ runner *Runner }

// Engine implements study.Profiler.
func (*emulatingProfiler) Engine() evidence.Engine { return evidence.Emulated }

// Profile implements study.Profiler.
func (p *emulatingProfiler) Profile(ctx context.Context, c study.Cell) (profile *study.Profile, err error) {
	q := analysis.Request{Workload: c.Workload, Card: c.Card}
	err = p.runner.steps(ctx, evidence.Emulated, q, Measurement{}, 0, func(m Measurement) error {
		profile, err = (&Profiler{Session: m.Session}).Profile(ctx, c)
		return err
	})
	return profile, err
}

// phases are the peaks of the parts of a step, over all steps.
func phases(o *measure.Outcome) []predict.Phase {
	var out []predict.Phase
	for _, name := range []string{trace.ForwardMark, trace.BackwardMark, trace.OptimizerMark} {
		var peaks measure.Peaks
		ran := false
		for _, s := range o.Steps {
			if part, ok := s.Phases[name]; ok {
				peaks, ran = peaks.Max(part), true
			}
		}
		if ran {
			out = append(out, predict.Phase{Name: name, Usage: allocator.Usage{
				PeakRequested: bytesize.Bytes(peaks.Requested), PeakAllocated: bytesize.Bytes(peaks.Allocated), PeakReserved: bytesize.Bytes(peaks.Reserved),
			}})
		}
	}
	return out
}

func (p *Profiler) provenance() study.Provenance {
	d, v := p.Session.Device, p.Session.Versions
	now := time.Now().UTC().Truncate(time.Second)
	return study.Provenance{
		GPU: d.Name, GPUMemory: bytesize.Bytes(d.Total), PyTorch: v.Torch, CUDA: d.CUDA, Python: v.Python,
		Settings: os.Getenv("PYTORCH_CUDA_ALLOC_CONF"), Time: &now,
	}
}
