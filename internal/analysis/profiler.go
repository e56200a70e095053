package analysis

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/snapshot"
	"memorymark/internal/study"
	"memorymark/internal/trace"
)

// Profiler profiles the cells of a study by running them.
type Profiler struct {
	Session  *measure.Session
	Progress func(measure.Progress) // called after each step; may be nil
}

// recordedEntries is how much a recording may hold: some hundred megabytes,
// thirty steps of the largest model that is studied.
const recordedEntries = 2_000_000

// profileTimed are the steps that are timed after those that are recorded,
// which recording slows down.
const profileTimed = 6

// Engine implements study.Profiler.
func (*Profiler) Engine() string { return study.Measured }

// Profile implements study.Profiler.
func (p *Profiler) Profile(ctx context.Context, c study.Cell) (*study.Profile, error) {
	folder, err := os.MkdirTemp("", "memorymark-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	probe := measure.Probe{
		Workload: c.Workload, Batches: []int64{c.Workload.Batch}, Steps: c.Steps, Warmup: c.Warmup, Timed: profileTimed,
		Limit: int64(c.Workload.LimitGiB * float64(bytesize.GiB)),
	}
	if p.Session.Device.Type == "cuda" {
		probe.Record = &measure.Record{Path: filepath.Join(folder, "snapshot.pickle"), Scope: measure.StepsOnly, MaxEntries: recordedEntries}
	}
	report, err := p.Session.Probe(ctx, probe, p.Progress)
	if err != nil {
		return nil, err
	}
	o := &report.Outcomes[0]
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
			out = append(out, predict.Phase{Name: name, Step: predict.Step{
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

// readRecording reads the device with the most events of a recording.
func readRecording(path string) (*trace.Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := snapshot.Read(f, snapshot.Limits{})
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	if len(s.Devices) == 0 {
		return nil, fmt.Errorf("the recording holds no device")
	}
	return slices.MaxFunc(s.Devices, func(a, b *trace.Trace) int { return len(a.Events) - len(b.Events) }), nil
}
