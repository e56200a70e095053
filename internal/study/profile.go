package study

import (
	"context"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// Cell is one workload of a study and how it is profiled.
type Cell struct {
	// Name is what the files of the cell are called, "" if it has none.
	Name     string
	Workload *workload.Workload
	// Card is what a prediction is for. A measurement says itself what it ran
	// on.
	Card   *gpu.Card
	Device string // cuda, cuda:1, mps or cpu; "" is cuda
	Warmup int    // steps that run first and are not recorded
	Steps  int    // steps that are recorded, at least 1
	Err    error  // why there is no such cell, nil if there is; then the rest may be missing
}

// Profiler profiles cells. There are three: Predictor, one that measures on a
// GPU and one that emulates; everything else in a study is the same for all.
//
// Profile runs Warmup steps, then records Steps of them. A cell that does not
// fit is no error: its Profile says so in OutOfMemory. Errors are what keeps
// the cell from being profiled at all; the other cells of a study continue.
type Profiler interface {
	// Engine is the kind of evidence that it gives.
	Engine() evidence.Engine
	Profile(ctx context.Context, c Cell) (*Profile, error)
}

// Profile is what a profiler saw of a cell. Everything else that a study says
// is worked out from it.
type Profile struct {
	// Trace holds the recorded steps and what was live before them. Marks named
	// as the Mark constants of package trace begin and end the parts of each
	// step. Nil if the cell ran out of memory and nothing could be saved.
	//
	// A recording that is switched on after the warm-up knows no stacks of what
	// was live by then, unless the warm-up ran under
	// _record_memory_history("state").
	Trace *trace.Trace
	// Phases are the peaks of the recorded steps by part, in the order of a
	// step, as the allocator's own statistics say. Phase.Name is a Mark
	// constant of package trace. Of a cell that ran out of memory they count
	// only where OutOfMemory.Needs is known.
	Phases []predict.Phase
	// StepSeconds are the times of steps, synchronised with the device; a
	// prediction has one estimate. Empty if not known.
	StepSeconds []float64
	OutOfMemory *OutOfMemory // nil if every step ran
	Provenance  Provenance
}

// OutOfMemory is a cell that does not fit.
type OutOfMemory struct {
	Phase     string         `json:"phase,omitempty"`     // a Mark of package trace; "" before the first step
	Requested bytesize.Bytes `json:"requested,omitempty"` // what could not be had
	Reserved  bytesize.Bytes `json:"reserved,omitempty"`  // held by PyTorch at the time
	Limit     bytesize.Bytes `json:"limit,omitempty"`     // the most it may hold
	// Needs is what PyTorch would reserve if there were enough, 0 if that is
	// not known.
	Needs bytesize.Bytes `json:"needs,omitempty"`
}

// Provenance says what a profile rests on.
type Provenance struct {
	GPU       string         `json:"gpu"`
	GPUMemory bytesize.Bytes `json:"gpu_memory,omitempty"`
	PyTorch   string         `json:"pytorch"`
	CUDA      string         `json:"cuda,omitempty"`
	Driver    string         `json:"driver,omitempty"`
	Python    string         `json:"python,omitempty"`
	// Settings are the allocator's, as PYTORCH_CUDA_ALLOC_CONF writes them.
	Settings string `json:"settings,omitempty"`
	// Time is when a measurement was made. A prediction does not depend on it.
	Time *time.Time `json:"time,omitempty"`
	// Accuracy is how far off such predictions were, nil for measurements and
	// where that is not known.
	Accuracy *predict.Accuracy `json:"accuracy,omitempty"`
}
