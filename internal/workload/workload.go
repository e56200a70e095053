// Package workload says what is trained: the model and its configuration, the
// batch, and how a step runs. It knows the schema, its defaults and what is
// allowed, and nothing of how much memory anything takes.
package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Workload is one thing to train, as JSON has it. Parse fills in defaults.
type Workload struct {
	ID                 string    `json:"id,omitempty"`
	Model              string    `json:"model,omitempty"`  // an id of the catalog
	Config             *Config   `json:"config,omitempty"` // or a Hugging Face config.json
	Batch              int64     `json:"batch"`
	Sequence           int64     `json:"sequence,omitempty"`
	Image              int64     `json:"image,omitempty"`
	Precision          Precision `json:"precision"`
	Optimizer          Optimizer `json:"optimizer"`
	OptimizerImpl      Impl      `json:"optimizer_impl,omitempty"`
	Phase              Phase     `json:"phase"`
	Loss               Loss      `json:"loss"`
	Attention          Attention `json:"attention,omitempty"`
	AttentionMask      Mask      `json:"attention_mask,omitempty"`
	Checkpointing      bool      `json:"checkpointing"`
	Mode               Mode      `json:"mode"`
	Accumulate         int       `json:"accumulate"`
	ClipGradNorm       bool      `json:"clip_grad_norm"`
	ExpandableSegments bool      `json:"expandable_segments"`
	GPU                string    `json:"gpu,omitempty"`
	LimitGiB           float64   `json:"limit_gib,omitempty"`
}

// The choices of a workload. The first of each list is the default.
type (
	Precision string
	Optimizer string
	Impl      string
	Phase     string
	Loss      string
	Attention string
	Mask      string
	Mode      string
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

// Parse reads a workload from JSON, fills in defaults and validates it.
func Parse(data []byte) (*Workload, error) {
	w := &Workload{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(w); err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	w.fillDefaults()
	return w, w.Validate()
}

func (w *Workload) fillDefaults() {
	fill(&w.Batch, 16)
	fill(&w.Sequence, 128)
	fill(&w.Image, 224)
	fill(&w.Precision, FP32)
	fill(&w.Optimizer, AdamW)
	fill(&w.OptimizerImpl, Foreach)
	fill(&w.Phase, Train)
	fill(&w.Loss, Labels)
	fill(&w.Attention, SDPA)
	fill(&w.AttentionMask, NoMask)
	fill(&w.Mode, Training)
	fill(&w.Accumulate, 1)
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports the first key whose value is not allowed.
func (w *Workload) Validate() error {
	for _, err := range []error{
		oneOf("precision", w.Precision, FP32, TF32, AMPBF16, AMPFP16, BF16),
		oneOf("optimizer", w.Optimizer, AdamW, Adam, SGD, SGDMomentum, NoOptimizer),
		oneOf("optimizer_impl", w.OptimizerImpl, Foreach, Fused, Loop),
		oneOf("phase", w.Phase, Train, Backward, Forward, Infer),
		oneOf("loss", w.Loss, Labels, MeanLogits),
		oneOf("attention", w.Attention, SDPA, Eager),
		oneOf("attention_mask", w.AttentionMask, NoMask, Ones, Padded),
		oneOf("mode", w.Mode, Training, Evaluation),
		positive("batch", w.Batch),
		positive("sequence", w.Sequence),
		positive("image", w.Image),
		positive("accumulate", int64(w.Accumulate)),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func oneOf[T ~string](key string, value T, allowed ...T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return fmt.Errorf("%s is %q; it must be one of %s", key, value, strings.Join(names, ", "))
}

func positive(key string, value int64) error {
	if value > 0 {
		return nil
	}
	return fmt.Errorf("%s is %d; it must be at least 1", key, value)
}
