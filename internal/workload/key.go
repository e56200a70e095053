package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"memorymark/internal/gpu"
	"memorymark/internal/invalid"
	"memorymark/internal/models"
	"memorymark/internal/nearest"
)

// Key is a key of a workload. Flags, the API's schema, the page's form and error
// messages are all made from this one row.
type Key struct {
	Name    string
	Label   string // in a form
	Help    string // a sentence without its full stop
	Kind    Kind
	Unit    string   // of a number; for other keys the placeholder of the value in help
	Values  []Value  // of a choice, the default first
	Default any      // nil if there is none
	Else    string   // meaning of an absent key if that is not a value
	Also    []string // other names of the flag
	Parts   []Part   // of a choice that can also be described by an object

	Fields []Field // of an object that have flags of their own

	least, most int64 // of a whole number
	field       func(*Workload) any
}

// Field is a key of an object that has a flag of its own.
type Field struct {
	Name, Flag string
	Kind       Kind
	Unit, Help string
}

// Kind is what a key holds.
type Kind string

// The kinds.
const (
	Text   Kind = "text"
	Whole  Kind = "whole number"
	Number Kind = "number"
	Switch Kind = "switch"
	Choice Kind = "choice"
	Object Kind = "object"
	Counts Kind = "counts" // a list of numbers, or how often each is there
)

// Part is a key of an object and its values.
type Part struct {
	Name   string
	Values []string // the default first
}

// Value is one of the values of a choice, with its label.
type Value struct {
	Name  string `json:"name"`
	Label string `json:"label"`
}

// The bounds of a workload. They are far beyond every card, and keep
// computations within 64 bits.
const (
	maxBatch    = 1 << 20
	maxSequence = 1 << 20
	maxImage    = 1 << 14
	maxTokens   = 1 << 31 // batch × sequence
	maxLimitGiB = 1 << 20
)

// MaxAccumulate is how many passes can be accumulated.
const MaxAccumulate = 1 << 10

// keys are the rows, in the order of the documentation.
var keys = []Key{
	{Name: "id", Kind: Text, Unit: "text", Help: "Any text; the answer repeats it", field: func(w *Workload) any { return &w.ID }},
	{
		Name: "model", Kind: Text, Unit: "id", Help: "The model's id in the catalog, or its Hugging Face id",
		field: func(w *Workload) any { return &w.Model },
	},
	{
		Name: "config", Kind: Object, Unit: "JSON", Help: "Keys that replace those of the model's config.json, as JSON; without a model, a whole config.json",
		field: func(w *Workload) any { return &w.Config },
	},
	{
		Name: "batch", Label: "Your batch", Kind: Whole, Unit: "samples", Help: "Samples per step", Default: int64(16),
		Also: []string{"batch-size"}, least: 1, most: maxBatch, field: func(w *Workload) any { return &w.Batch },
	},
	{
		Name: "sequence", Label: "Sequence", Kind: Whole, Unit: "tokens", Help: "Tokens per sample", Default: int64(128),
		Also: []string{"context-length"}, least: 1, most: maxSequence, field: func(w *Workload) any { return &w.Sequence },
	},
	{
		Name: "lengths", Kind: Counts, Unit: "file", Else: "all have sequence tokens",
		Help:  "Tokens of each sample, as a file with one number per line or as JSON; batches are padded to their longest sample",
		field: func(w *Workload) any { return &w.Lengths },
	},
	{
		Name: "packing", Kind: Switch, Default: false, Help: "Pack the samples of lengths into rows of sequence tokens instead of padding them",
		field: func(w *Workload) any { return &w.Packing },
	},
	{
		Name: "image", Label: "Image side", Kind: Whole, Unit: "pixels", Help: "Width and height of an image in pixels", Default: int64(224),
		least: 1, most: maxImage, field: func(w *Workload) any { return &w.Image },
	},
	{
		Name: "precision", Label: "Precision", Kind: Choice, Unit: "precision", Help: "Precision of the step; tf32 is torch.set_float32_matmul_precision(\"high\")",
		Values: values(FP32, "fp32", TF32, "tf32", AMPBF16, "bf16 autocast", AMPFP16, "fp16 autocast", BF16, "bf16, weights too"),
		field:  func(w *Workload) any { return &w.Precision },
	},
	{
		Name: "optimizer", Label: "Optimizer", Kind: Choice, Unit: "name", Help: "Optimizer",
		Values: optimizers(), field: func(w *Workload) any { return &w.Optimizer },
	},
	{
		Name: "optimizer_impl", Label: "Optimizer runs", Kind: Choice, Unit: "implementation", Help: "Implementation of the optimizer",
		Values: values(Foreach, "foreach", Fused, "fused", Loop, "one by one"), field: func(w *Workload) any { return &w.OptimizerImpl },
	},
	{
		Name: "phase", Label: "Runs", Kind: Choice, Unit: "part", Help: "Part of the step to run",
		Values: values(Train, "whole steps", Backward, "forward and backward", Forward, "forward", Infer, "forward without gradients"),
		field:  func(w *Workload) any { return &w.Phase },
	},
	{
		Name: "loss", Label: "Loss", Kind: Choice, Unit: "loss", Help: "Loss to run backward from: the model's own, or the mean of its logits",
		Values: values(Labels, "of labels", MeanLogits, "mean of logits"), field: func(w *Workload) any { return &w.Loss },
	},
	{
		Name: "attention", Label: "Attention", Kind: Choice, Unit: "implementation", Help: "Implementation of attention",
		Values: values(SDPA, "sdpa", Eager, "eager"), field: func(w *Workload) any { return &w.Attention },
	},
	{
		Name: "attention_mask", Label: "Attention mask", Kind: Choice, Unit: "mask", Help: "Attention mask in the batch",
		Values: values(NoMask, "none", Ones, "all ones", Padded, "padded"), field: func(w *Workload) any { return &w.AttentionMask },
	},
	{
		Name: "checkpointing", Label: "Activation checkpointing", Kind: Switch, Default: false,
		Help: "Gradient checkpointing: recompute activations in backward instead of keeping them", field: func(w *Workload) any { return &w.Checkpointing },
	},
	{
		Name: "mode", Label: "Mode", Kind: Choice, Unit: "mode", Help: "Mode of the model: train() or eval()",
		Values: values(Training, "train", Evaluation, "eval"), field: func(w *Workload) any { return &w.Mode },
	},
	{
		Name: "accumulate", Label: "Accumulate", Kind: Whole, Unit: "passes", Help: "Gradient accumulation: forward and backward passes per optimizer step",
		Default: int64(1), least: 1, most: MaxAccumulate, field: func(w *Workload) any { return &w.Accumulate },
	},
	{
		Name: "clip_grad_norm", Label: "Clip gradients", Kind: Switch, Default: false, Help: "Clip the gradients by their total norm",
		field: func(w *Workload) any { return &w.ClipGradNorm },
	},
	{
		Name: "loop", Label: "Loop", Kind: Choice, Unit: "loop", Help: "Training loop that runs the steps, or a JSON object that describes one",
		Values: loopValues(), Parts: loopParts, field: func(w *Workload) any { return &w.Loop },
	},
	{
		Name: "expandable_segments", Label: "Expandable segments", Kind: Switch, Default: false,
		Help: "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", field: func(w *Workload) any { return &w.ExpandableSegments },
	},
	{
		Name: "adapter", Label: "LoRA rank", Kind: Object, Unit: "JSON", Default: int64(0),
		Help: "Adapter to train instead of the weights, as JSON; a number is its rank",
		Fields: []Field{
			{Name: "rank", Flag: "lora", Kind: Whole, Unit: "rank", Help: "Train LoRA adapters of this rank instead of the weights"},
			{Name: "targets", Flag: "lora-targets", Kind: Text, Unit: "names", Help: "Layers that get an adapter: all-linear, or names separated by commas"},
			{Name: "dropout", Flag: "lora-dropout", Kind: Number, Unit: "p", Help: "Dropout probability of the adapters"},
			{Name: "dora", Flag: "dora", Kind: Switch, Help: "Use DoRA: also train the magnitude of each weight"},
		},
		field: func(w *Workload) any { return &w.Adapter },
	},
	{
		Name: "quantize", Label: "Weights stored", Kind: Choice, Unit: "format", Help: "How bitsandbytes stores the frozen weights",
		Values: values(NotQuantized, "as they are", NF4, "4-bit (nf4)", NF4Double, "4-bit, quantized twice", Int8, "8-bit"),
		field:  func(w *Workload) any { return &w.Quantize },
	},
	{
		Name: "parallel", Kind: Object, Unit: "kind", Else: "one GPU",
		Help:   "Parallelism over several GPUs and its options, as in fsdp,mixed_precision=bf16; the batch is then per GPU",
		Fields: []Field{{Name: "gpus", Flag: "gpus", Kind: Whole, Unit: "N", Help: "Number of GPUs for --parallel"}},
		field:  func(w *Workload) any { return &w.Parallel },
	},
	{
		Name: "channels_last", Label: "Channels last", Kind: Switch, Default: false,
		Help: "Keep images and the weights of convolutions in torch.channels_last", field: func(w *Workload) any { return &w.ChannelsLast },
	},
	{
		Name: "versions", Label: "Versions", Kind: Object, Unit: "JSON", Help: "Versions of the libraries, as JSON",
		Fields: []Field{
			{Name: "torch", Flag: "torch", Kind: Text, Unit: "version", Help: "PyTorch version, such as " + models.Reference.Torch.String()},
			{Name: "transformers", Flag: "transformers", Kind: Text, Unit: "version", Help: "Version of transformers, such as " + models.Reference.Transformers.String()},
		},
		field: func(w *Workload) any { return &w.Versions },
	},
	{
		Name: "gpu", Kind: Text, Unit: "id", Help: "The GPU's id in the catalog", Else: "this machine's card, else " + gpu.Default,
		field: func(w *Workload) any { return &w.GPU },
	},
	{
		Name: "limit_gib", Kind: Number, Unit: "GiB", Help: "Maximum memory that the allocator may reserve, in GiB", Also: []string{"limit"},
		Else: "the card's memory minus the CUDA context", field: func(w *Workload) any { return &w.LimitGiB },
	},
}

// values makes the values of a choice from pairs of a name and a label.
func values(pairs ...any) []Value {
	var out []Value
	for pair := range slices.Chunk(pairs, 2) {
		out = append(out, Value{Name: fmt.Sprint(pair[0]), Label: fmt.Sprint(pair[1])})
	}
	return out
}

// Keys returns the keys that a workload can have.
func Keys() []Key { return slices.Clone(keys) }

// KeyNames returns their names.
func KeyNames() []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.Name
	}
	return out
}

// Choices returns the names that a key can have, the default first; nil for a
// key that is not a choice.
func Choices(key string) []string {
	k, _ := findKey(key)
	return k.names()
}

func (k *Key) names() []string {
	var out []string
	for _, v := range k.Values {
		out = append(out, v.Name)
	}
	return out
}

// Initial is the value of an absent key, nil for none.
func (k Key) Initial() any {
	if len(k.Values) > 0 {
		return k.Values[0].Name
	}
	return k.Default
}

func findKey(name string) (*Key, bool) {
	for i := range keys {
		if keys[i].Name == name {
			return &keys[i], true
		}
	}
	return &Key{}, false
}

// set puts a value, as JSON, into a workload.
func (k *Key) set(w *Workload, raw json.RawMessage) error {
	if k.Kind == Object && bytes.Equal(bytes.TrimSpace(raw), []byte("0")) {
		return nil // none
	}
	field := k.field(w)
	if err := json.Unmarshal(raw, field); err != nil {
		return invalid.At(k.Name, invalid.Kind(k.Name, raw, field, err))
	}
	return nil
}

// check reports a value that the key cannot have.
func (k *Key) check(w *Workload) error {
	if own, ok := k.field(w).(interface{ check(k *Key) error }); ok {
		return own.check(k)
	}
	value := reflect.ValueOf(k.field(w)).Elem()
	switch k.Kind {
	case Whole:
		return invalid.Within(k.Name, value.Int(), k.least, k.most)
	case Choice:
		return invalid.OneOf(k.Name, value.String(), k.names())
	default:
		return nil
	}
}

// unknownKey names an unknown key, and the one that was probably meant.
func unknownKey(key string) error {
	if near := nearest.To(key, KeyNames()); len(near) > 0 {
		return fmt.Errorf("%q is not a key; did you mean %s?", key, near[0])
	}
	return fmt.Errorf("%q is not a key; the keys are %s", key, strings.Join(KeyNames(), ", "))
}
