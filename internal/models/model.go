// Package models holds the model families. Each is a file and a row of its own:
// the keys of its configuration, its heads, and code that reads like the
// transformers module it stands for (transformers 5.17).
package models

import (
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

// Model is a model on the device.
type Model struct {
	// Forward calls the model on a batch.
	Forward func(t *torch.Torch, b *Batch) Output
	// Loss is the loss of logits, for the last stage of a pipeline; nil where the
	// model computes its own.
	Loss  func(t *torch.Torch, logits *torch.Var, labels *torch.Tensor) torch.Value
	Width int64  // of what stages of a pipeline exchange
	End   func() // gives back what the model needs while its process runs; nil for nothing

	// Feed makes a batch of samples that Forward takes in the place of its own, nil where a
	// workload says what a batch is. Optimizer is the user's own, nil for the workload's.
	Feed      func(samples int64)
	Optimizer *torch.Optimizer
}

// Run is how a model runs: what a workload says in addition to the configuration.
type Run struct {
	DType         torch.DType // of the parameters
	Train         bool        // the mode of the model; else evaluation
	Checkpointing bool
	Eager         bool // attention; else sdpa
	Mask          Mask
	NoCache       bool // use_cache of the configuration is set to false
	ChannelsLast  bool // model.to(memory_format=torch.channels_last)
	Sequence      int64
	Image         int64
	Adapter       *Adapter // nil for none
	Quantize      torch.Quantization
	Compute       torch.DType   // of quantized weights
	Autocast      bool          // forward runs under autocast
	Owners        []torch.Owner // of the parameters, where weights are quantized
	Versions      Versions
	Stage         *Stage // of a pipeline, nil for the whole model
}

// dropout is the probability that attention is called with: a model in evaluation
// drops nothing.
func (r Run) dropout(p float64) float64 {
	if !r.Train {
		return 0
	}
	return p
}

// BufferDType is the type of buffers: prepare_model_for_kbit_training casts
// parameters alone (peft/utils/other.py).
func (r Run) BufferDType() torch.DType {
	if r.Quantize == torch.NotQuantized {
		return r.DType
	}
	return r.Compute
}

// Mask is the attention mask that a model is given.
type Mask int

// The masks.
const (
	NoMask Mask = iota
	OnesMask
	PaddedMask // has zeros
)

// Batch is what a model is called with; nil where there is nothing.
type Batch struct {
	IDs, Mask, Pixels, Labels, DecoderIDs *torch.Tensor
	Features                              *torch.Tensor // of sounds, in the place of ids
	Hidden                                *torch.Tensor // what the stage before returned, in the place of ids
	Starts, Ends                          *torch.Tensor // of answers
	Items                                 *torch.Tensor // num_items_in_batch: labels that count, in all passes of a step
	Padded                                bool          // the mask has zeros
}

// Output is the object that a model returns: it keeps its tensors until it is
// dropped, in the order of its fields.
type Output struct {
	Loss, Logits torch.Value
	Balance      torch.Value   // aux_loss, which stands between these two
	Cache        []torch.Value // keys and values, in an object of their own
	Rest         []torch.Value // other tensors
	Tuple        bool          // a loss and logits alone, whose last goes first (CPython's tuple_dealloc)
}

// New makes the model of a configuration on the device.
func New(t *torch.Torch, c *hfconfig.Config, r Run) (*Model, error) {
	family, _, err := Find(c)
	if err != nil {
		return nil, err
	}
	return family.New(t, c, r)
}

// New makes the model of a configuration of the family.
func (f *Family) New(t *torch.Torch, c *hfconfig.Config, r Run) (*Model, error) {
	if !f.evaluated && r.Versions != Reference && r.Versions != (Versions{}) { // what is written by hand is the reference
		s := theSource()
		if s == nil || s.Family(f.Type) == nil {
			return nil, fmt.Errorf("%s of %v is not known: %s", f.Type, r.Versions, withoutSource)
		}
		f = s.Family(f.Type)
	}
	head := f.head(c.Architecture)
	if head == nil {
		return nil, fmt.Errorf("%s has no %s", f.Type, c.Architecture)
	}
	cfg, err := f.read(c)
	if err != nil {
		return nil, err
	}
	if r.ChannelsLast && !f.ChannelsLast {
		return nil, fmt.Errorf("channels_last of a %s is not modelled", f.Type)
	}
	m, err := load(t, cfg, head, r)
	if err != nil {
		return nil, err
	}
	if r.ChannelsLast {
		t.ToChannelsLast()
	}
	if r.Adapter == nil {
		return m, nil
	}
	// gradient_checkpointing_enable() of a model whose main_input_name is input_ids
	// (transformers/modeling_utils.py), and PEFT of any that is not quantized
	// (peft/peft_model.py, _prepare_model_for_gradient_checkpointing).
	bins, _ := Features(c)
	takesIDs := head.Labels == Pairs || !TakesImages(c) && bins == 0
	t.InputsRequireGrad = r.Checkpointing && f.PythonModule() == Transformers && (takesIDs || r.Quantize == torch.NotQuantized)
	err = addAdapter(t, c.ModelType, r.Adapter, r)
	if r.Quantize != torch.NotQuantized {
		t.ToType(r.DType)
	}
	return m, err
}

// load builds a model, or has bitsandbytes' weights loaded into it.
func load(t *torch.Torch, cfg any, head *Head, r Run) (m *Model, err error) {
	if r.Quantize == torch.NotQuantized {
		return head.make(t, cfg, r)
	}
	t.BuildQuantized(func() { m, err = head.make(t, cfg, r) }, r.Quantize, r.Compute, r.Owners)
	return m, err
}

// Drop drops the output.
func (o Output) Drop(t *torch.Torch) {
	first, second := o.Loss, o.Logits
	if o.Tuple {
		first, second = second, first
	}
	t.Drop(first)
	t.Drop(o.Balance)
	t.Drop(second)
	for _, v := range o.Cache {
		t.Drop(v)
	}
	for _, v := range o.Rest {
		t.Drop(v)
	}
}

// InFloat32 is convert_outputs_to_fp32, which Accelerate puts around a model
// under autocast: tensors of half types are cast (accelerate/utils/operations.py).
func (o Output) InFloat32(t *torch.Torch, tuples bool) Output {
	return o.through(t, tuples, func(v torch.X) torch.Value { return t.To(v, torch.Float32) })
}

// Sunk is what DistributedDataParallel hands on if it looks for unused parameters: a
// copy of every tensor of the output (torch/nn/parallel/distributed.py, _DDPSink).
func (o Output) Sunk(t *torch.Torch, tuples bool) Output {
	return o.through(t, tuples, t.CloneWithGrad)
}

// through makes another output of one, tensor by tensor, those of a cache only if it is
// made of tuples. The old output goes when all are made.
func (o Output) through(t *torch.Torch, tuples bool, each func(torch.X) torch.Value) Output {
	another := func(v torch.Value) torch.Value {
		if v == (torch.Value{}) {
			return v
		}
		return each(v.Borrow())
	}
	out := Output{Loss: another(o.Loss), Balance: another(o.Balance), Logits: another(o.Logits), Tuple: o.Tuple}
	for _, v := range o.Cache {
		if tuples {
			out.Cache = append(out.Cache, another(v))
		} else {
			out.Cache = append(out.Cache, t.Hold(v.Borrow()))
		}
	}
	for _, v := range o.Rest {
		out.Rest = append(out.Rest, another(v))
	}
	o.Drop(t)
	return out
}

// classified ends the forward function of a model that classifies:
// its loss, if there are labels, and its output.
func classified(t *torch.Torch, f *torch.Frame, scores torch.Value, batch *Batch) Output {
	return classifiedBy(func(logits, labels torch.X) torch.Value { return t.CrossEntropy(logits, labels) }, t, f, scores, batch)
}

// classifiedByLossFunction is classified for a model that calls self.loss_function
// (transformers/loss/loss_utils.py) instead of nn.CrossEntropyLoss.
func classifiedByLossFunction(t *torch.Torch, f *torch.Frame, scores torch.Value, batch *Batch) Output {
	return classifiedBy(func(logits, labels torch.X) torch.Value { return fixedCrossEntropy(t, logits, labels, batch) }, t, f, scores, batch)
}

func classifiedBy(lossFunction func(logits, labels torch.X) torch.Value, t *torch.Torch, f *torch.Frame, scores torch.Value, batch *Batch) Output {
	logits := f.Let(scores)
	loss := f.Let(torch.Value{})
	if batch.Labels != nil {
		loss.Set(lossFunction(t.View(logits, -1, logits.Tensor().Dim(-1)), torch.Borrow(batch.Labels)))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(logits)}
	f.End()
	return out
}
