package torch

import (
	"slices"

	"memorymark/internal/steptime"

	"memorymark/internal/trace"
)

// OptimizerKind is a class of optimizers and how it is called: one row for each
// that a workload can name. A new one is a row here and a file with its step;
// everything else, the prober and the page included, is generated from the row.
type OptimizerKind struct {
	Name      string             // in a workload
	Label     string             // for people
	Class     string             // which annotates steps with its name; "" for none
	Module    string             // that has the class; "" is torch.optim
	Arguments map[string]float64 // other than the parameters
	Trainer   string             // what transformers' TrainingArguments calls it

	// OneByOne marks a class that loops over parameters unless foreach=True.
	OneByOne bool

	// Companion names the optimizer of the parameters that this one does not
	// take.
	Companion string

	Since Version // of PyTorch that has it; 0 for all that are modelled

	step func(o *Optimizer, group []*Tensor) // parameters with gradients
	// How many passes of kernels a step makes over the parameters, and how many
	// tensors of their size these read and write; 0 if the step's memory says what
	// there is. The last is that of the fused kernel.
	passes, moved, fusedMoved int
}

// Optimizers are the modelled optimizers; the first one is the default.
var Optimizers = []OptimizerKind{
	{
		Name: "adamw", Label: "AdamW", Class: "AdamW", Arguments: map[string]float64{"lr": 5e-5}, Trainer: "adamw_torch",
		step: (*Optimizer).stepAdam, passes: 8, moved: 20, fusedMoved: 7,
	},
	{
		Name: "adam", Label: "Adam", Class: "Adam", Arguments: map[string]float64{"lr": 5e-5}, Trainer: "adamw_torch",
		step: (*Optimizer).stepAdam, passes: 8, moved: 20, fusedMoved: 7,
	},
	{
		Name: "sgd", Label: "SGD", Class: "SGD", Arguments: map[string]float64{"lr": 1e-3}, Trainer: "sgd",
		step: func(*Optimizer, []*Tensor) {}, passes: 1, moved: 3, fusedMoved: 3, // parameters are updated in place
	},
	{
		Name: "sgd-momentum", Label: "SGD with momentum", Class: "SGD", Arguments: map[string]float64{"lr": 1e-3, "momentum": 0.9}, Trainer: "sgd",
		step: (*Optimizer).stepMomentum, passes: 3, moved: 8, fusedMoved: 5,
	},
	{
		Name: "adafactor", Label: "Adafactor", Class: "Adafactor", Arguments: map[string]float64{"lr": 1e-3}, Trainer: "adafactor",
		OneByOne: true, // torch/optim/_adafactor.py, adafactor: foreach=None is False
		step:     (*Optimizer).stepAdafactor,
	},
	{
		Name: "rmsprop", Label: "RMSprop", Class: "RMSprop", Arguments: map[string]float64{"lr": 1e-3}, Trainer: "rmsprop",
		step: (*Optimizer).stepRMSprop, passes: 5, moved: 13,
	},
	{
		Name: "adamw-8bit", Label: "8-bit AdamW", Class: "AdamW8bit", Module: bitsandbytes, Arguments: map[string]float64{"lr": 5e-5}, Trainer: "adamw_bnb_8bit",
		step: (*Optimizer).stepAdamW8Bit, passes: 1, moved: 4,
	},
	{
		Name: "paged-adamw-8bit", Label: "paged 8-bit AdamW", Class: "PagedAdamW8bit", Module: bitsandbytes, Arguments: map[string]float64{"lr": 5e-5},
		Trainer: "paged_adamw_8bit", step: (*Optimizer).stepPagedAdamW8Bit, passes: 1, moved: 4,
	},
	{
		Name: "lion", Label: "Lion", Class: "Lion", Module: bitsandbytes, Arguments: map[string]float64{"lr": 1e-5}, Trainer: "lion_32bit",
		step: (*Optimizer).stepLion, passes: 1, moved: 5,
	},
	{
		Name: "muon", Label: "Muon and AdamW", Class: "Muon", Arguments: map[string]float64{"lr": 1e-3}, Companion: "adamw", Since: Version{2, 9},
		step: (*Optimizer).stepMuon,
	},
	{Name: "none", Label: "none"},
}

const bitsandbytes = "bitsandbytes.optim"

// HasFused reports whether the optimizer or its companion has a fused kernel. A
// workload's implementation applies to the companion then.
func (k OptimizerKind) HasFused() bool {
	return k.fusedMoved > 0 || k.Companion != "" && OptimizerNamed(k.Companion).HasFused()
}

// OptimizerNamed returns the row of a name, or that of no optimizer if the name
// is unknown.
func OptimizerNamed(name string) OptimizerKind {
	for _, k := range Optimizers {
		if k.Name == name {
			return k
		}
	}
	return OptimizerKind{}
}

// Impl is how an optimizer computes its step.
type Impl int

// The implementations: all parameters in one call with temporaries for all of
// them, one kernel without temporaries, or one parameter after the other.
const (
	Foreach Impl = iota
	Fused
	Loop
)

// Optimizer is a torch.optim optimizer of all parameters, or a part of them for Muon. Its
// state is allocated in its first step, for each parameter that has a gradient.
type Optimizer struct {
	t          *Torch
	kind       OptimizerKind
	impl       Impl
	parameters []*Tensor
	groups     [][]*Tensor // param_groups
	decays     []bool      // of a group: weight decay is added to copies of its gradients

	trainers    bool        // it is as transformers' Trainer makes it
	partitioned bool        // it is a ZeroRedundancyOptimizer
	parts       [][]*Tensor // of each rank then

	companion *Optimizer // of the parameters that this one does not take, nil if it takes all

	adam    map[*Tensor]adamState
	sgd     map[*Tensor]*Tensor // momentum buffers, Lion's too
	squares map[*Tensor]*Tensor // RMSprop's averages
	factors map[*Tensor]*factors
	bits8   map[*Tensor]*state8Bit
	maps    []*Tensor // of 8-bit values
	decayed []*Tensor // gradients with weight decay, while the step has them
}

// NewOptimizer makes an optimizer, which allocates nothing.
func (t *Torch) NewOptimizer(kind OptimizerKind, impl Impl) *Optimizer {
	o := &Optimizer{
		t: t, kind: kind, impl: impl, parameters: t.parameters, groups: [][]*Tensor{t.parameters},
		adam: make(map[*Tensor]adamState, len(t.parameters)), sgd: map[*Tensor]*Tensor{}, squares: map[*Tensor]*Tensor{},
		factors: map[*Tensor]*factors{}, bits8: map[*Tensor]*state8Bit{},
	}
	if kind.Companion != "" {
		o.splitMatrices()
	}
	return o
}

// Group makes it one of groups of parameters, as a program does that makes its own
// optimizer. Where weight decay is added to gradients, it is added to copies of them.
func (o *Optimizer) Group(groups [][]*Tensor, decays []bool) {
	o.groups, o.decays, o.parameters = groups, decays, slices.Concat(groups...)
}

// AsTrainerMakes configures it as transformers' Trainer does: two groups of
// parameters, the second one without weight decay, and for some names another
// class. Biases and the weights of norms are not decayed; they are vectors, and
// others rarely are (transformers/trainer.py, create_optimizer,
// get_decay_parameter_names).
func (o *Optimizer) AsTrainerMakes() {
	o.trainers = true
	var decayed, others []*Tensor
	for _, p := range o.t.parameters {
		if (len(p.Shape) > 1) != p.oddDecay {
			decayed = append(decayed, p)
		} else {
			others = append(others, p)
		}
	}
	o.groups = [][]*Tensor{decayed, others}
}

// OddDecay marks a parameter whose name decides on decay against the rule: a
// decayed vector, or a matrix that is not decayed.
func (x *Tensor) OddDecay() *Tensor {
	x.oddDecay = true
	return x
}

// Step is optimizer.step(), annotated as PyTorch does it
// (torch/optim/optimizer.py, profile_hook_step).
func (o *Optimizer) Step() {
	if o.kind.Class == "" {
		return
	}
	name := "Optimizer.step#" + o.kind.Class + ".step"
	o.t.Mark(name, false)
	since := o.t.moment()
	o.t.NoGrad(func() {
		if o.kind.Name == "adafactor" && o.trainers {
			o.transformersAdafactor()
			return
		}
		for i, group := range o.groups {
			params := withGradients(group)
			if i < len(o.decays) && o.decays[i] {
				o.decayed = o.copyGradients(params)
			}
			o.kind.step(o, params)
			o.dropDecayed()
		}
	})
	o.countWork(since)
	o.t.Mark(name, true)
	if o.companion != nil {
		o.companion.Step()
	}
}

// copyGradients is _foreach_add(gradients, parameters, alpha=weight_decay).
func (o *Optimizer) copyGradients(params []*Tensor) []*Tensor {
	return mapTensors(params, func(p *Tensor) *Tensor { return o.t.emptyLike(p.grad, p.grad.DType) })
}

func (o *Optimizer) dropDecayed() {
	o.t.releaseList(o.decayed)
	o.decayed = nil
}

// countWork notes the kernels of a step in place of those that its memory stands
// for: Adam passes over its tensors with eight kernels (torch/optim/adam.py,
// _multi_tensor_adam), the fused one reads and writes seven tensors. The
// multi-tensor kernels take some hundred parameters at a time.
func (o *Optimizer) countWork(since int) {
	passes, moved := o.kind.passes, o.kind.moved
	if o.impl == Fused && o.kind.fusedMoved > 0 {
		passes, moved = 1, o.kind.fusedMoved
	}
	trained, bytes := withGradients(o.parameters), int64(0)
	for _, p := range trained {
		if o.partitioned {
			o.t.countTraffic(&o.t.work.Traffic.Broadcast, p.bytes())
		}
		bytes += p.bytes()
	}
	if moved == 0 {
		return
	}
	const atOnce = 100
	kind, launches := steptime.Foreach, float64(passes)*(1+float64(len(trained))/atOnce) // every layer adds the same share of one
	if o.impl == Loop {
		kind, launches = steptime.Kernel, float64(passes*len(trained))
	}
	o.t.work.Launches = o.t.work.Launches[:since]
	o.t.kernel(kind, Float32, float64(bytes*int64(moved))/max(launches, 1))
	o.t.work.Launches[since].Count = launches
}

// ZeroGrad is optimizer.zero_grad(set_to_none=True).
func (o *Optimizer) ZeroGrad() {
	if o.kind.Class == "" {
		o.t.ZeroGrad()
		return
	}
	name := "Optimizer.zero_grad#" + o.kind.Class + ".zero_grad"
	o.t.Mark(name, false)
	o.t.zeroGrad(o.parameters)
	o.t.Mark(name, true)
	if o.companion != nil {
		o.companion.ZeroGrad()
	}
}

// withGrad returns the parameters that have gradients.
func (t *Torch) withGrad() []*Tensor { return withGradients(t.parameters) }

func withGradients(parameters []*Tensor) []*Tensor {
	out := make([]*Tensor, 0, len(parameters))
	for _, p := range parameters {
		if p.grad != nil {
			out = append(out, p)
		}
	}
	return out
}

// MakeGradients allocates a gradient for every trainable parameter, as if a backward
// pass had reached all of them. A parameter that was never read belongs to the model
// itself.
func (t *Torch) MakeGradients() {
	for _, p := range t.parameters {
		if p.owner == nil {
			p.owner = t.root
		}
		if p.requiresGrad && p.grad == nil {
			p.grad = t.emptyStrided(p.DType, p.Shape, p.stride)
		}
	}
}

// Learning returns how many parameters are not frozen.
func (t *Torch) Learning() int { return len(t.trainable()) }

// Gradients returns how many parameters have gradients.
func (t *Torch) Gradients() int { return len(t.withGrad()) }

// byDType groups tensors as the foreach functions do
// (_group_tensors_by_device_and_dtype), in the order of first appearance.
func byDType(tensors []*Tensor) [][]*Tensor {
	var groups [][]*Tensor
	for _, x := range tensors {
		i := slices.IndexFunc(groups, func(group []*Tensor) bool { return group[0].DType == x.DType })
		if i < 0 {
			i = len(groups)
			groups = append(groups, make([]*Tensor, 0, len(tensors)))
		}
		groups[i] = append(groups[i], x)
	}
	return groups
}

// releaseList frees a Python list of tensors, from its end.
func (t *Torch) releaseList(list []*Tensor) {
	for i := len(list) - 1; i >= 0; i-- {
		t.release(list[i])
	}
}

// ZeroGrad is zero_grad(set_to_none=True): gradients are freed in the order of
// the parameters.
func (t *Torch) ZeroGrad() { t.zeroGrad(t.parameters) }

func (t *Torch) zeroGrad(parameters []*Tensor) {
	for _, p := range parameters {
		if p.grad != nil {
			t.release(p.grad)
			p.grad = nil
		}
	}
}

// Input makes a tensor of a batch.
func (t *Torch) Input(dtype DType, shape ...int64) *Tensor {
	var x *Tensor
	t.As(trace.Input, func() { x = t.empty(dtype, shape...) })
	return x
}
