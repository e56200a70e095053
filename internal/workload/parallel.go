package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"memorymark/internal/invalid"
)

// Parallel is how a step is shared among GPUs: the arguments of
// torch.distributed. The batch of the workload is that of one GPU.
type Parallel struct {
	Kind ParallelKind `json:"kind"`
	GPUs int64        `json:"gpus"`
	// Shard is how many GPUs of hsdp share the parameters; others have copies.
	Shard int64 `json:"shard,omitempty"`
	// Tensor is how many GPUs share each matrix of fsdp+tp.
	Tensor int64 `json:"tensor,omitempty"`
	// MixedPrecision is bf16 for FSDP's policy of parameters in bf16 and
	// gradients reduced in fp32, "" for none.
	MixedPrecision Precision `json:"mixed_precision,omitempty"`
	// ReshardAfterForward is FSDP's reshard_after_forward, true unless said.
	ReshardAfterForward *bool `json:"reshard_after_forward,omitempty"`
	Offload             bool  `json:"offload,omitempty"` // FSDP's CPUOffloadPolicy
	// GradientAsBucketView and StaticGraph are DDP's.
	GradientAsBucketView bool `json:"gradient_as_bucket_view,omitempty"`
	StaticGraph          bool `json:"static_graph,omitempty"`
	// Stages are the numbers of layers that each GPU of a pipeline has, Schedule is
	// the order of its work, and Microbatches is the number of parts of a batch.
	Stages       []int64  `json:"stages,omitempty"`
	Schedule     Schedule `json:"schedule,omitempty"`
	Microbatches int64    `json:"microbatches,omitempty"`
}

// ParallelKind is a kind of parallelism.
type ParallelKind string

// The kinds.
const (
	DDP            ParallelKind = "ddp"
	ZeRO1          ParallelKind = "zero1"
	FSDP           ParallelKind = "fsdp"
	HSDP           ParallelKind = "hsdp"
	TensorParallel ParallelKind = "tp"
	FSDPWithTensor ParallelKind = "fsdp+tp"
	Pipeline       ParallelKind = "pipeline"
)

// Label is the name of the kind for people.
func (k ParallelKind) Label() string {
	switch k {
	case ZeRO1:
		return "ZeRO-1"
	case FSDP:
		return "FSDP2"
	case TensorParallel:
		return "tensor parallelism"
	case FSDPWithTensor:
		return "FSDP2 with tensor parallelism"
	case Pipeline:
		return "pipeline"
	default:
		return strings.ToUpper(string(k))
	}
}

// parallelOptions are the keys that each kind has in addition to kind and gpus.
var parallelOptions = map[ParallelKind][]string{
	DDP:            {"gradient_as_bucket_view", "static_graph"},
	ZeRO1:          {"gradient_as_bucket_view", "static_graph"},
	FSDP:           {"mixed_precision", "reshard_after_forward", "offload"},
	HSDP:           {"shard", "mixed_precision", "reshard_after_forward", "offload"},
	TensorParallel: {},
	FSDPWithTensor: {"tensor", "mixed_precision", "reshard_after_forward", "offload"},
	Pipeline:       {"stages", "schedule", "microbatches"},
}

// parallelKinds are the kinds, those that most people use first.
var parallelKinds = []string{string(DDP), string(FSDP), string(HSDP), string(ZeRO1), string(TensorParallel), string(FSDPWithTensor), string(Pipeline)}

// maxGPUs is more than any job has.
const maxGPUs = 1 << 20

// Reshards reports whether FSDP frees a layer's parameters after its forward.
func (p *Parallel) Reshards() bool { return p.ReshardAfterForward == nil || *p.ReshardAfterForward }

// Text says in a few words how a step is shared.
func (p *Parallel) Text() string {
	text := fmt.Sprintf("%s on %d GPUs", p.Kind, p.GPUs)
	for _, o := range []struct {
		when bool
		text string
	}{
		{p.Shard > 0, fmt.Sprintf("shards of %d", p.Shard)},
		{p.Tensor > 0, fmt.Sprintf("matrices over %d", p.Tensor)},
		{p.MixedPrecision != "", string(p.MixedPrecision) + " parameters"},
		{!p.Reshards(), "kept after forward"},
		{p.Offload, "offloaded"},
		{p.GradientAsBucketView, "gradients in buckets"},
		{p.StaticGraph, "static graph"},
		{p.Kind == Pipeline, p.pipelineText()},
	} {
		if o.when {
			text += ", " + o.text
		}
	}
	return text
}

// UnmarshalJSON refuses unknown keys.
func (p *Parallel) UnmarshalJSON(data []byte) error {
	type plain Parallel
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(p)); err != nil {
		if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			return fmt.Errorf("%s is not a key of parallel; it has kind, gpus and the options of the kind", name)
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more text after the object")
	}
	return nil
}

// parallelText is the JSON of how people write it on a command line: the kind,
// then options, as in fsdp,gpus=8,mixed_precision=bf16,offload or
// pipeline,stages=8/8/8/8,microbatches=16.
func parallelText(text string) json.RawMessage {
	kind, rest, more := strings.Cut(text, ",")
	object := map[string]any{"kind": kind}
	if more {
		for option := range strings.SplitSeq(rest, ",") {
			name, value, given := strings.Cut(option, "=")
			name = strings.ReplaceAll(name, "-", "_")
			switch {
			case !given:
				object[name] = true
			case json.Valid([]byte(value)) && name != "stages":
				object[name] = json.RawMessage(value)
			case name == "stages" && json.Valid(stagesText(value)):
				object[name] = json.RawMessage(stagesText(value))
			default:
				object[name] = value
			}
		}
	}
	data, err := json.Marshal(object)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return data
}

// check reports its errors.
func (p *Parallel) check(w *Workload) error {
	if p == nil {
		return nil
	}
	options, ok := parallelOptions[p.Kind]
	if !ok {
		return invalid.At("parallel", invalid.OneOf("kind of parallel", string(p.Kind), parallelKinds))
	}
	if p.Kind == Pipeline {
		if len(p.Stages) == 0 {
			return invalid.At("parallel", errors.New("a pipeline needs stages: how many layers each GPU has, as in pipeline,stages=8/8/8/8"))
		}
		p.settlePipeline()
	}
	if p.GPUs < 2 || p.GPUs > maxGPUs {
		return invalid.At("parallel", fmt.Errorf("gpus of parallel is %d; it must be from 2 to %d; leave out parallel for one GPU", p.GPUs, maxGPUs))
	}
	for _, name := range p.given() {
		if !slices.Contains(options, name) {
			return invalid.At("parallel", fmt.Errorf("parallel has %s, which %s does not use; apart from gpus it takes %s", name, p.Kind, strings.Join(options, ", ")))
		}
	}
	if err := p.checkValues(options); err != nil {
		return invalid.At("parallel", err)
	}
	if p.Kind == Pipeline {
		return p.checkPipeline(w)
	}
	return invalid.At("parallel", p.checkAdapter(w))
}

// checkAdapter reports what PyTorch cannot do with an adapter or with
// bitsandbytes' weights.
func (p *Parallel) checkAdapter(w *Workload) error {
	whole := p.Kind == DDP || p.Kind == ZeRO1
	switch {
	case w.Adapter != nil && (p.Kind == TensorParallel || p.Kind == FSDPWithTensor):
		// torch/distributed/tensor/parallel/style.py, ColwiseParallel._apply
		return fmt.Errorf("kind is %s, which splits nn.Linear and not PEFT's layers; with an adapter it must be ddp, zero1, fsdp or hsdp", p.Kind)
	case w.Quantize != NotQuantized && !whole:
		// torch/distributed/fsdp/_fully_shard/_fsdp_param.py, _init_sharded_param: nn.Parameter of a
		// uint8 tensor; accelerate leaves such weights whole (fsdp2_prepare_model).
		return fmt.Errorf("kind is %s, and fully_shard does not shard weights in integers; with quantize it must be ddp or zero1", p.Kind)
	case w.Adapter != nil && w.Adapter.DoRA && !whole:
		return fmt.Errorf("kind is %s, which is not modelled with DoRA; it must be ddp or zero1", p.Kind)
	}
	return nil
}

// settleParallel chooses an optimizer that can handle tensor parallelism. It leaves
// some tensors split among the ranks and some whole, and foreach functions do not
// mix the two (torch/optim/optimizer.py,
// _default_to_fused_or_foreach falls back to one by one).
func (w *Workload) settleParallel(d Draft) error {
	if w.Parallel != nil && w.Parallel.Kind == FSDPWithTensor && w.ClipGradNorm {
		// torch.stack of the norms: "All operands in aten.stack.default must have the same mesh"
		return invalid.At("clip_grad_norm", errors.New("clip_grad_norm_ does not work with fsdp+tp, because gradients are sharded over different meshes"))
	}
	if w.Parallel == nil || w.Parallel.Kind != TensorParallel {
		return nil
	}
	_, given := d["optimizer_impl"]
	switch {
	case w.ClipGradNorm:
		return invalid.At("clip_grad_norm", errors.New("clip_grad_norm_ does not work with tp, because only some gradients are sharded"))
	case w.OptimizerImpl == Foreach && given:
		return invalid.At("optimizer_impl", fmt.Errorf("optimizer_impl is %q, which does not work with tp, because only some parameters are sharded; it must be %s or %s", Foreach, Fused, Loop))
	case w.OptimizerImpl == Foreach:
		w.OptimizerImpl = Loop
	}
	return nil
}

// given lists the options that are not at their defaults.
func (p *Parallel) given() []string {
	var out []string
	for _, o := range []struct {
		name string
		set  bool
	}{
		{"shard", p.Shard != 0},
		{"tensor", p.Tensor != 0},
		{"mixed_precision", p.MixedPrecision != ""},
		{"reshard_after_forward", p.ReshardAfterForward != nil},
		{"offload", p.Offload},
		{"gradient_as_bucket_view", p.GradientAsBucketView},
		{"static_graph", p.StaticGraph},
		{"stages", p.Stages != nil},
		{"schedule", p.Schedule != ""},
		{"microbatches", p.Microbatches != 0},
	} {
		if o.set {
			out = append(out, o.name)
		}
	}
	return out
}

func (p *Parallel) checkValues(options []string) error {
	if p.MixedPrecision != "" && p.MixedPrecision != BF16 {
		return fmt.Errorf("mixed_precision is %q; it must be %s", p.MixedPrecision, BF16)
	}
	for _, part := range []struct {
		name  string
		value int64
	}{{"shard", p.Shard}, {"tensor", p.Tensor}} {
		if slices.Contains(options, part.name) && (part.value < 2 || p.GPUs%part.value != 0) {
			return fmt.Errorf("%s is %d; it must be at least 2 and divide gpus, which is %d", part.name, part.value, p.GPUs)
		}
	}
	return nil
}
