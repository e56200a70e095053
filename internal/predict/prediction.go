package predict

import (
	"fmt"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/steptime"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// Prediction is what training a workload takes on a card. It is the same answer
// on the command line, for each workload of a file, in the API and on the page,
// and the same whether it was predicted or emulated.
type Prediction struct {
	ID   string `json:"id,omitempty"`
	Fits bool   `json:"fits" doc:"whether all steps fit the limit"`
	// Verdict also says whether the margin is large enough to rely on.
	Verdict Verdict         `json:"verdict" enum:"fits,tight,does not fit" doc:"tight: all steps fit, and less than the margin is left"`
	Engine  evidence.Engine `json:"engine" enum:"predicted,emulated"`
	// OutOfMemory is set if the steps do not fit. All else then says what they
	// would take if there were more memory; of emulated steps, what they took
	// until then.
	OutOfMemory *OutOfMemory      `json:"out_of_memory,omitempty"`
	Steps       []allocator.Usage `json:"steps"`
	// Late is the other way that a race may end, nil where there is none.
	Late *Late `json:"late,omitempty" doc:"what DDP takes if NCCL still holds the first buckets when they are rebuilt"`
	// Ranks are what ranks take whose parts are not of one size; the steps and all
	// else are those of rank 0.
	Ranks          []Rank         `json:"ranks,omitempty" doc:"what each kind of rank takes, where parts are uneven; absent where all ranks take the same"`
	Parameters     int64          `json:"parameters,omitempty" doc:"elements; absent where emulated, and the model does not fit"`
	ModelAllocated bytesize.Bytes `json:"model_allocated,omitempty" doc:"once the model is built; absent where it does not fit"`
	Breakdown      Breakdown      `json:"breakdown,omitzero" doc:"absent where emulated steps do not fit"`
	PeakPhase      string         `json:"peak_phase,omitempty" doc:"the part of the step that takes the most: forward, backward or optimizer"`
	// Modules are the same bytes by module of the model, the largest first;
	// what belongs to none (the batch, workspaces) is not among them.
	Modules    []ModuleBytes `json:"modules,omitempty" doc:"absent where steps were emulated"`
	MemoryLine *MemoryLine   `json:"memory_line,omitempty"`
	Lengths    *Range        `json:"lengths,omitempty" doc:"of samples of different lengths: the range of what steps take"`

	StepSeconds float64 `json:"step_seconds,omitempty" doc:"of a step once the process has settled; absent if it does not fit"`
	// StepRange is where the time lies in about four of five cases, and what says so.
	StepRange        *steptime.Range `json:"step_seconds_range,omitempty" doc:"in which the time lies in four of five cases"`
	StepCompared     string          `json:"step_seconds_compared,omitempty" doc:"what times of this card were compared with"`
	CPUBound         *CPUBound       `json:"cpu_bound,omitempty" doc:"absent where the card is not idle for want of launches"`
	Loader           *LoaderTime     `json:"loader,omitempty" doc:"absent where nothing was said of the loader"`
	StepKWh          float64         `json:"step_kwh,omitempty" doc:"that boards of this card take at most in a step, all of them together"`
	SamplesPerSecond float64         `json:"samples_per_second,omitempty" doc:"absent if it does not fit"`
	TokensPerSecond  float64         `json:"tokens_per_second,omitempty" doc:"of text; absent if it does not fit"`

	Workload *workload.Workload `json:"workload"`
	GPU      string             `json:"gpu"` // its id
	GPUTotal bytesize.Bytes     `json:"gpu_total"`
	Limit    bytesize.Bytes     `json:"limit"` // the most the allocator may reserve
	Margin   bytesize.Bytes     `json:"margin" doc:"what must be left of the limit for fits: 2 % of the card, and at least 300 MiB"`
	Left     bytesize.Bytes     `json:"left" doc:"of the limit, by the rank that leaves the least; negative: what is missing"`
	Caveats  []string           `json:"caveats,omitempty" doc:"what the card cannot do as asked"`
	// Accuracy is how far off such predictions were, nil if that is not known.
	Accuracy *Accuracy `json:"accuracy,omitempty"`

	Card *gpu.Card `json:"-"`
}

// CPUBound is a step in which the card waits for Python to launch its kernels.
type CPUBound struct {
	Launches      float64 `json:"launches"`
	DeviceSeconds float64 `json:"device_seconds" doc:"what the card computes for: at best what CUDA graphs or torch.compile would leave"`
}

// LoaderTime is what a loader takes for the samples of a step.
type LoaderTime struct {
	Seconds        float64 `json:"seconds"`
	WaitingSeconds float64 `json:"waiting_seconds" doc:"that the card waits for it in a step"`
}

// WithID is the prediction of an equal workload that has an id.
func (p *Prediction) WithID(id string) *Prediction {
	out, w := *p, *p.Workload
	out.ID, w.ID = id, id
	out.Workload = &w
	return &out
}

// PeakReserved is the most that the allocator reserves, or would without a
// limit.
func (p *Prediction) PeakReserved() bytesize.Bytes { return PeakOf(p.Steps).PeakReserved }

// OutOfMemory is a request that could not be met.
type OutOfMemory struct {
	Step      int            `json:"step"`            // 1 is the first; 0 is before the steps
	Phase     string         `json:"phase,omitempty"` // forward, backward or optimizer
	Requested bytesize.Bytes `json:"requested"`
	Allocated bytesize.Bytes `json:"allocated"` // at the time
	Reserved  bytesize.Bytes `json:"reserved"`  // at the time
	Limit     bytesize.Bytes `json:"limit"`
}

// Reason says in a sentence why it failed.
func (o *OutOfMemory) Reason() string {
	when := "before the first step"
	switch {
	case o.Step > 0 && o.Phase != "":
		when = fmt.Sprintf("in the %s of step %d", PhaseName(o.Phase), o.Step)
	case o.Step > 0:
		when = fmt.Sprintf("in step %d", o.Step)
	}
	free := o.Limit - o.Allocated
	if free < o.Requested {
		return fmt.Sprintf("%s it requests %v, but only %[4]v of %[3]v is free", when, o.Requested, o.Limit, free)
	}
	return fmt.Sprintf("%s it requests %v; %v of %v is free, but fragmented into smaller pieces", when, o.Requested, free, o.Limit)
}

// PhaseName is a part of a step in the words of a sentence.
func PhaseName(mark string) string {
	if mark == trace.OptimizerMark {
		return "optimizer step"
	}
	return mark + " pass"
}
