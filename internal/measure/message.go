package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"memorymark/internal/emulate"
	"memorymark/internal/gpu"
	"memorymark/internal/models"
	"memorymark/internal/steptime"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// protocolVersion is what both sides must speak; docs/prober-protocol.md.
const protocolVersion = 1

// UserModel is a function of a user's own file that makes what is trained.
type UserModel struct {
	Path     string `json:"path"`
	Function string `json:"function"`
}

// Probe asks for steps in a fresh process.
type Probe struct {
	Workload *workload.Workload // its batch does not count
	User     *UserModel         // trained in place of the workload's model

	Batches []int64 // one after the other in the same process
	Steps   int     // that are measured, at each batch
	Warmup  int     // steps before, unmeasured
	Timed   int     // steps after, timed together
	Limit   int64   // the most that may be reserved, 0 for what there is
	Compile bool    // the model, with torch.compile
	// TimesOnly leaves out peaks where they would have to be counted, on a CPU:
	// that takes time, and PyTorch compiles nothing meanwhile.
	TimesOnly bool
	Record    *Record
}

// Record asks for a memory snapshot.
type Record struct {
	Path       string `json:"path"`
	Scope      string `json:"scope"` // WholeProcess or StepsOnly
	MaxEntries int    `json:"max_entries"`
}

// What a recording holds.
const (
	WholeProcess = "process" // from before the model is built
	StepsOnly    = "steps"   // the measured ones
)

// ProbeResult is what a probe found.
type ProbeResult struct {
	Outcomes       []Outcome `json:"outcomes"` // up to the first that failed
	Parameters     int64     `json:"parameters,omitempty"`
	ModelAllocated int64     `json:"model_allocated,omitempty"`
	Retries        int64     `json:"retries"`
	OutOfMemory    int64     `json:"out_of_memory"`
	Total          int64     `json:"total_bytes,omitempty"`
	Free           int64     `json:"free_bytes,omitempty"`
	Outside        int64     `json:"outside_bytes,omitempty"` // of the allocator: context and libraries, and what others hold
	HostPeak       int64     `json:"host_peak_bytes,omitempty"`
	CompiledGraphs int64     `json:"compiled_graphs,omitempty"` // by torch.compile
	Notes          []string  `json:"notes,omitempty"`           // what was made of a configuration that is not modelled
	// Assumed are values that were made up, on an emulated card.
	Assumed []emulate.Assumption `json:"assumed,omitempty"`
	// Where the time went: the device's context, the model, everything.
	DeviceSeconds float64 `json:"device_seconds,omitempty"`
	BuildSeconds  float64 `json:"build_seconds,omitempty"`
	WallSeconds   float64 `json:"wall_seconds"`
}

// check holds a report against what was asked: an outcome for each batch up to
// the first that failed, and all of the steps where none did.
func (r *ProbeResult) check(p Probe) error {
	if len(r.Outcomes) == 0 || len(r.Outcomes) > len(p.Batches) {
		return fmt.Errorf("the prober reports %d of %d batches", len(r.Outcomes), len(p.Batches))
	}
	for i, o := range r.Outcomes {
		switch last := i == len(r.Outcomes)-1; {
		case o.Batch != p.Batches[i]:
			return fmt.Errorf("the prober reports batch %d for batch %d", o.Batch, p.Batches[i])
		case o.Failure == nil && len(o.Steps) != p.Steps:
			return fmt.Errorf("batch %d: the prober ran %d of %d steps and reports no failure", o.Batch, len(o.Steps), p.Steps)
		case o.Failure == nil && last && i < len(p.Batches)-1:
			return fmt.Errorf("the prober reports %d of %d batches and no failure", len(r.Outcomes), len(p.Batches))
		}
	}
	return nil
}

// estimateTimes replaces how long steps took by how long they would: on an
// emulated card no kernel runs.
func (r *ProbeResult) estimateTimes(card *gpu.Card) {
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		o.SecondsPerStep, o.Estimated, o.Work = o.Work.Seconds(card), o.Work, nil
		for j := range o.Steps {
			o.Steps[j].Seconds = 0
		}
	}
}

// Outcome is what a batch did. Without a failure all of its steps ran.
type Outcome struct {
	Batch          int64          `json:"batch_size"`
	Steps          []Step         `json:"steps"`
	SecondsPerStep float64        `json:"seconds_per_step,omitempty"` // absent unless timed
	Recording      string         `json:"recording,omitempty"`        // the snapshot's path
	Work           *steptime.Work `json:"work,omitempty"`             // of the largest step, on an emulated card
	Estimated      *steptime.Work `json:"-"`                          // what the time was estimated from
	Failure        *Failure       `json:"failure,omitempty"`
}

// Step is what one step took. Devices without an allocator of their own have
// nothing reserved.
type Step struct {
	PeakRequested int64            `json:"peak_requested"`
	PeakAllocated int64            `json:"peak_allocated"`
	PeakReserved  int64            `json:"peak_reserved,omitempty"`
	EndAllocated  int64            `json:"end_allocated"`
	Seconds       float64          `json:"seconds,omitempty"` // absent on an emulated card
	Phases        map[string]Peaks `json:"phases,omitempty"`  // forward, backward and optimizer
}

// Peaks are the highest amounts of a part of a step, or of several steps.
type Peaks struct {
	Requested int64 `json:"requested"`
	Allocated int64 `json:"allocated"`
	Reserved  int64 `json:"reserved,omitempty"`
}

// Peaks are the highest of all steps: the optimizer's state comes with the
// first one.
func (o *Outcome) Peaks() Peaks {
	var p Peaks
	for _, s := range o.Steps {
		p.Requested = max(p.Requested, s.PeakRequested)
		p.Allocated = max(p.Allocated, s.PeakAllocated)
		p.Reserved = max(p.Reserved, s.PeakReserved)
	}
	return p
}

// Max are the highest of both.
func (p Peaks) Max(q Peaks) Peaks {
	return Peaks{max(p.Requested, q.Requested), max(p.Allocated, q.Allocated), max(p.Reserved, q.Reserved)}
}

// StepProgress is what a running probe says.
type StepProgress struct {
	Batch int64 `json:"batch_size"`
	Step  int   `json:"step"` // from 1
	Done  Step  `json:"-"`    // what it took
}

// Device is what steps run on, as PyTorch sees it.
type Device struct {
	Type         string `json:"device"` // cuda, mps or cpu
	Name         string `json:"name"`
	Capability   string `json:"capability,omitempty"`
	SMs          int    `json:"multiprocessors,omitempty"`
	ThreadsPerSM int    `json:"threads_per_multiprocessor,omitempty"`
	CUDA         string `json:"cuda,omitempty"`
	CuDNN        int64  `json:"cudnn,omitempty"`
	Total        int64  `json:"total_bytes"`
	Free         int64  `json:"free_bytes,omitempty"` // with an empty context there
}

// Versions are what steps run with.
type Versions struct {
	Python       string `json:"python"`
	Torch        string `json:"torch"`
	Transformers string `json:"transformers,omitempty"`
}

// request is what goes to the prober.
type request struct {
	Type string `json:"type"`
	ID   int64  `json:"id"`

	// prepare
	LookID int64 `json:"look_id,omitempty"`
	imports
	Spares int `json:"spares,omitempty"`

	// prepare and probe
	Device  string  `json:"device,omitempty"`
	Timeout float64 `json:"timeout_seconds,omitempty"`

	// probe
	Workload json.RawMessage `json:"workload,omitempty"`
	Recipe   *recipe         `json:"recipe,omitempty"`
	Batches  []int64         `json:"batches,omitempty"`
	Steps    int             `json:"steps,omitempty"`
	Warmup   int             `json:"warmup_steps,omitempty"`
	Timed    int             `json:"timed_steps,omitempty"`
	Limit    int64           `json:"limit_bytes,omitempty"`
	Compile  bool            `json:"compile,omitempty"`
	Times    bool            `json:"times_only,omitempty"`
	Record   *Record         `json:"record,omitempty"`
	// BuildOnce has a user's model built on the CPU once, for this probe and
	// those that follow.
	BuildOnce bool `json:"build_once,omitempty"`
}

// header is what every message of the prober has.
type header struct {
	Type    string   `json:"type"`
	ID      int64    `json:"id"`
	Failure *Failure `json:"failure,omitempty"` // of one that failed
}

// workloadMessage is a workload as the prober takes it: all of its keys, and
// what its configuration settles.
func workloadMessage(w *workload.Workload, user *UserModel) (json.RawMessage, error) {
	data, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]any)
	numbers := json.NewDecoder(bytes.NewReader(data))
	numbers.UseNumber() // transformers takes no 30 for a 30.0
	if err := numbers.Decode(&keys); err != nil {
		return nil, err
	}
	for _, key := range []string{"id", "gpu", "limit_gib", "batch"} {
		delete(keys, key)
	}
	if user != nil {
		keys["user"] = user
	} else {
		keys["model_type"], keys["architecture"] = w.Config.ModelType, w.Config.Architecture
	}
	return json.Marshal(keys)
}

// recipe is how the prober makes what a workload names: what the rows of the
// family, the head and the optimizer say, so that the prober has no tables of
// its own. It follows from the workload.
type recipe struct {
	Module    string           `json:"module,omitempty"` // of the model's class
	Auto      bool             `json:"auto,omitempty"`   // not modelled: by transformers' auto mappings
	Images    bool             `json:"images,omitempty"`
	Features  []int64          `json:"features,omitempty"` // of a sound: bins and frames
	Labels    models.Labels    `json:"labels,omitempty"`
	Decodes   bool             `json:"decodes,omitempty"`
	Needs     []string         `json:"needs,omitempty"` // token ids of the configuration
	Optimizer *optimizerRecipe `json:"optimizer,omitempty"`
}

type optimizerRecipe struct {
	Module    string             `json:"module,omitempty"` // "" is torch.optim
	Class     string             `json:"class"`
	Arguments map[string]float64 `json:"arguments"`
	Trainer   string             `json:"trainer"`          // what transformers' TrainingArguments calls it
	Companion *optimizerRecipe   `json:"beside,omitempty"` // of what is no matrix of a hidden layer, where this one takes only these
}

func newOptimizerRecipe(kind torch.OptimizerKind) *optimizerRecipe {
	r := &optimizerRecipe{Module: kind.Module, Class: kind.Class, Arguments: kind.Arguments, Trainer: kind.Trainer}
	if kind.Companion != "" {
		r.Companion = newOptimizerRecipe(torch.OptimizerNamed(kind.Companion))
	}
	return r
}

// newRecipe is the recipe of a workload. A user's model has no head.
func newRecipe(w *workload.Workload, user *UserModel) (*recipe, error) {
	if w.Parallel != nil {
		return nil, errors.New("one GPU of a multi-GPU job is predicted, not measured; memorymark run --gpus emulates your own program on several GPUs")
	}
	if w.Lengths != nil {
		return nil, errors.New("samples of different lengths are predicted, not run; memorymark run emulates your own program with its loader")
	}
	r := &recipe{}
	if kind := torch.OptimizerNamed(string(w.Optimizer)); kind.Class != "" {
		r.Optimizer = newOptimizerRecipe(kind)
	}
	if user != nil {
		return r, nil
	}
	r.Auto = w.Unmodelled != "" || models.IsEvaluated(w.Config)
	family, head, err := models.Find(w.Config)
	switch {
	case r.Auto && err == nil:
		r.Needs = head.Needs
		return r, nil
	case r.Auto:
		return r, nil
	case err != nil:
		return nil, err
	}
	r.Module, r.Images = family.PythonModule(), family.Images
	if bins, frames := models.Features(w.Config); bins > 0 {
		r.Features = []int64{bins, frames}
	}
	r.Labels, r.Decodes, r.Needs = head.Labels, head.Decodes, head.Needs
	return r, nil
}
