// Package workload says what is trained: the model and its configuration, the
// batch, and how a step runs. It knows the schema, its defaults and what is
// allowed, and nothing about memory.
package workload

import (
	"encoding/json"
	"fmt"
	"sync"

	"memorymark/internal/bytesize"
	"memorymark/internal/hfconfig"
	"memorymark/internal/models"
)

// Workload is one thing to train. It comes from a Draft, which fills in
// defaults.
type Workload struct {
	ID                 string           `json:"id,omitempty"`
	Model              string           `json:"model,omitempty"` // an id of the catalog, "" for a config alone
	Config             *hfconfig.Config `json:"config"`          // a Hugging Face config.json
	Batch              int64            `json:"batch"`
	Sequence           int64            `json:"sequence,omitempty"`
	Lengths            *Lengths         `json:"lengths,omitempty"` // nil: every sample has Sequence tokens
	Packing            bool             `json:"packing,omitempty"`
	Image              int64            `json:"image,omitempty"`
	Precision          Precision        `json:"precision"`
	Optimizer          Optimizer        `json:"optimizer"`
	OptimizerImpl      Impl             `json:"optimizer_impl,omitempty"`
	Phase              Phase            `json:"phase"`
	Loss               Loss             `json:"loss"`
	Attention          Attention        `json:"attention,omitempty"`
	AttentionMask      Mask             `json:"attention_mask,omitempty"`
	Checkpointing      bool             `json:"checkpointing"`
	Mode               Mode             `json:"mode"`
	Accumulate         int              `json:"accumulate"`
	ClipGradNorm       bool             `json:"clip_grad_norm"`
	Loop               TrainingLoop     `json:"loop"`
	ExpandableSegments bool             `json:"expandable_segments"`
	Adapter            *Adapter         `json:"adapter,omitempty"`
	Quantize           Quantize         `json:"quantize,omitempty"`
	Parallel           *Parallel        `json:"parallel,omitempty"`
	ChannelsLast       bool             `json:"channels_last,omitempty"`
	Versions           *Versions        `json:"versions,omitempty"` // nil: the default ones
	GPU                string           `json:"gpu,omitempty"`
	LimitGiB           float64          `json:"limit_gib,omitempty"`

	Program    models.Program `json:"-"` // makes the model in place of Config, nil for none
	Unmodelled string         `json:"-"` // why the configuration cannot be predicted, "" if it can
}

// Limit is the maximum that the allocator may reserve, 0 if unspecified.
func (w *Workload) Limit() bytesize.Bytes {
	return bytesize.Bytes(w.LimitGiB * float64(bytesize.GiB))
}

// WithLimit returns a copy under another limit.
func (w *Workload) WithLimit(limit bytesize.Bytes) *Workload {
	limited := *w
	limited.LimitGiB = float64(limit) / float64(bytesize.GiB)
	return &limited
}

// The choices of a workload. The first constant of each is the default.
type (
	// Precision is what a step computes in.
	Precision string
	// Optimizer is what updates the parameters.
	Optimizer string
	// Impl is how the optimizer computes.
	Impl string
	// Phase is how much of a step runs.
	Phase string
	// Loss is what backward starts from.
	Loss string
	// Attention is how attention is computed.
	Attention string
	// Mask is the attention mask in the batch.
	Mask string
	// Mode is the mode of the model.
	Mode string
)

// Precisions.
const (
	FP32    Precision = "fp32"
	TF32    Precision = "tf32"
	AMPBF16 Precision = "amp-bf16"
	AMPFP16 Precision = "amp-fp16"
	BF16    Precision = "bf16"
)

// Optimizers and how they are computed.
const (
	AdamW       Optimizer = "adamw"
	Adam        Optimizer = "adam"
	SGD         Optimizer = "sgd"
	SGDMomentum Optimizer = "sgd-momentum"
	NoOptimizer Optimizer = "none"

	Foreach Impl = "foreach"
	Fused   Impl = "fused"
	Loop    Impl = "loop"
)

// How much of a step runs, and in which mode.
const (
	Train    Phase = "train"
	Backward Phase = "backward"
	Forward  Phase = "forward"
	Infer    Phase = "infer"

	Labels     Loss = "labels"
	MeanLogits Loss = "mean"

	SDPA  Attention = "sdpa"
	Eager Attention = "eager"

	NoMask Mask = "none"
	Ones   Mask = "ones"
	Padded Mask = "padded"

	Training   Mode = "train"
	Evaluation Mode = "eval"
)

// Parse reads a workload from a JSON object, fills in defaults and validates
// it.
func Parse(data []byte) (*Workload, error) {
	d, err := ParseDraft(data)
	if err != nil {
		return nil, err
	}
	return d.Workload()
}

// Default returns a workload of no model in which every key has its default.
func Default() *Workload {
	w := defaults()
	return &w
}

var defaults = sync.OnceValue(func() (w Workload) {
	for i := range keys {
		initial, err := json.Marshal(keys[i].Initial())
		if err == nil {
			err = keys[i].set(&w, initial)
		}
		if err != nil {
			panic(fmt.Sprintf("workload: the default of %s: %v", keys[i].Name, err)) // it is part of the program
		}
	}
	return w
})
