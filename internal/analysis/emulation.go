package analysis

import (
	"context"
	"path/filepath"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/phantom"
	"memorymark/internal/predict"
	"memorymark/internal/steptime"
	"memorymark/internal/study"
	"memorymark/internal/trace"
)

// Emulation is what the steps of one batch take on a card that is not there.
// What it shares with a prediction has the same names.
type Emulation struct {
	ID             string           `json:"id,omitempty"`
	ModelName      string           `json:"model_name"`
	Batch          int64            `json:"batch_size"`
	Engine         evidence.Engine  `json:"engine"`            // Emulated
	Because        string           `json:"because,omitempty"` // why it was not predicted
	Fits           bool             `json:"fits"`
	Failure        *measure.Failure `json:"failure,omitempty"` // why it does not
	Steps          []predict.Step   `json:"steps"`             // up to that
	Parameters     int64            `json:"parameters"`
	ModelAllocated bytesize.Bytes   `json:"model_allocated"`
	// Breakdown is absent where the steps do not fit.
	Breakdown *predict.Breakdown `json:"breakdown,omitempty"`
	PeakPhase string             `json:"peak_phase,omitempty"` // forward, backward or optimizer
	GPU       string             `json:"gpu"`                  // its id
	GPUName   string             `json:"gpu_name"`
	GPUTotal  bytesize.Bytes     `json:"gpu_total"`
	Limit     bytesize.Bytes     `json:"limit"` // the most the allocator may reserve
	Versions  measure.Versions   `json:"versions"`
	Notes     []string           `json:"notes,omitempty"` // what was made of a configuration that is not modelled
	// Assumed are the places where a value that a kernel would have computed was made up.
	Assumed  []phantom.Assumption `json:"assumed,omitempty"`
	Accuracy []string             `json:"accuracy"` // how far off such answers were, in sentences
	// How fast it would be; absent if it does not fit.
	StepSeconds float64 `json:"step_seconds,omitempty"`
	Throughput
	TimeAccuracy *steptime.Accuracy `json:"step_seconds_accuracy,omitempty"`
}

// PeakReserved is the most that the allocator held.
func (e *Emulation) PeakReserved() bytesize.Bytes {
	var most bytesize.Bytes
	for _, s := range e.Steps {
		most = max(most, s.PeakReserved)
	}
	return most
}

// Emulate runs three steps of a workload's batch on a card that is not there.
// The whole process is recorded to a path, unless that is empty.
func (r *Runner) Emulate(ctx context.Context, q Request, user *measure.UserModel, path string) (e *Emulation, err error) {
	record, remove, err := scratchRecord(measure.WholeProcess, "snapshot.pickle", studyEntries)
	if err != nil {
		return nil, err
	}
	defer remove()
	if path != "" {
		if record.Path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
	}
	probe := measure.Probe{
		Workload: q.Workload, User: user, Batches: []int64{q.Workload.Batch}, Steps: confirmSteps, Limit: int64(q.Workload.Limit()), Record: record,
	}
	err = r.steps(ctx, evidence.Emulated, q, Measurement{User: user}, 0, func(m Measurement) error {
		found, err := m.Session.Probe(ctx, probe, nil)
		if err == nil {
			e, err = newEmulation(q, m, found)
		}
		return err
	})
	if err != nil || !e.Fits {
		return e, err
	}
	t, err := readRecording(record.Path)
	if err != nil {
		return nil, err
	}
	b := predict.RecordedBreakdown(t, study.Classified(q.Workload, t), e.Steps, q.Card.Context.Bytes)
	e.Breakdown = &b
	return e, nil
}

func newEmulation(q Request, m Measurement, found *measure.Result) (*Emulation, error) {
	o := &found.Outcomes[0]
	if o.Failure != nil && !o.Failure.TooBig() {
		return nil, o.Failure
	}
	e := &Emulation{
		ID: q.Workload.ID, ModelName: m.nameOf(q.Workload), Batch: o.Batch, Engine: evidence.Emulated, Fits: o.Failure == nil, Failure: o.Failure,
		Because: q.Workload.Unmodelled, Notes: found.Notes, Assumed: found.Assumed, Parameters: found.Parameters, ModelAllocated: bytesize.Bytes(found.ModelAllocated),
		GPU: q.Card.ID, GPUName: q.Card.Name, GPUTotal: q.Card.Memory.Bytes, Limit: predict.Limit(q.Workload, q.Card), Versions: m.Session.Versions,
		Accuracy: evidence.EmulationAccuracy(q.Card.Name, m.Session.Versions.Torch),
	}
	e.PeakPhase = peakPhase(o.Steps)
	for _, s := range o.Steps {
		e.Steps = append(e.Steps, predict.Step{
			PeakRequested: bytesize.Bytes(s.PeakRequested), PeakAllocated: bytesize.Bytes(s.PeakAllocated),
			PeakReserved: bytesize.Bytes(s.PeakReserved), EndAllocated: bytesize.Bytes(s.EndAllocated),
		})
	}
	if e.Fits && o.SecondsPerStep > 0 {
		e.StepSeconds, e.Throughput, e.TimeAccuracy = o.SecondsPerStep, q.throughput(o.Batch, o.SecondsPerStep), &steptime.Stated
	}
	return e, nil
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
