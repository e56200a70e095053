package analysis

import (
	"context"
	"path/filepath"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
)

// Emulation is what the steps of one batch take on a card that is not there.
// What it shares with a prediction has the same names.
type Emulation struct {
	ID             string           `json:"id,omitempty"`
	ModelName      string           `json:"model_name"`
	Batch          int64            `json:"batch_size"`
	Engine         evidence.Engine  `json:"engine"` // Emulated
	Fits           bool             `json:"fits"`
	Failure        *measure.Failure `json:"failure,omitempty"` // why it does not
	Steps          []predict.Step   `json:"steps"`             // up to that
	Parameters     int64            `json:"parameters"`
	ModelAllocated bytesize.Bytes   `json:"model_allocated"`
	GPU            string           `json:"gpu"` // its id
	GPUName        string           `json:"gpu_name"`
	GPUTotal       bytesize.Bytes   `json:"gpu_total"`
	Limit          bytesize.Bytes   `json:"limit"` // the most the allocator may reserve
	Versions       measure.Versions `json:"versions"`
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
	probe := measure.Probe{
		Workload: q.Workload, User: user, Batches: []int64{q.Workload.Batch}, Steps: confirmSteps, Limit: int64(q.Workload.Limit()),
	}
	if path != "" {
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		probe.Record = &measure.Record{Path: path, Scope: measure.WholeProcess, MaxEntries: studyEntries}
	}
	err = r.steps(ctx, evidence.Emulated, q, Measurement{User: user}, 0, func(m Measurement) error {
		found, err := m.Session.Probe(ctx, probe, nil)
		if err == nil {
			e, err = newEmulation(q, m, found)
		}
		return err
	})
	return e, err
}

func newEmulation(q Request, m Measurement, found *measure.Result) (*Emulation, error) {
	o := &found.Outcomes[0]
	if o.Failure != nil && !o.Failure.TooBig() {
		return nil, o.Failure
	}
	e := &Emulation{
		ID: q.Workload.ID, ModelName: m.nameOf(q.Workload), Batch: o.Batch, Engine: evidence.Emulated, Fits: o.Failure == nil, Failure: o.Failure,
		Parameters: found.Parameters, ModelAllocated: bytesize.Bytes(found.ModelAllocated),
		GPU: q.Card.ID, GPUName: q.Card.Name, GPUTotal: q.Card.Memory.Bytes, Limit: predict.Limit(q.Workload, q.Card), Versions: m.Session.Versions,
	}
	for _, s := range o.Steps {
		e.Steps = append(e.Steps, predict.Step{
			PeakRequested: bytesize.Bytes(s.PeakRequested), PeakAllocated: bytesize.Bytes(s.PeakAllocated),
			PeakReserved: bytesize.Bytes(s.PeakReserved), EndAllocated: bytesize.Bytes(s.EndAllocated),
		})
	}
	return e, nil
}
