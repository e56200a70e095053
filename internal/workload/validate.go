package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The bounds of a workload. They are far beyond every card, and keep what is
// computed from them within 64 bits.
const (
	maxBatch      = 1 << 20
	maxSequence   = 1 << 20
	maxImage      = 1 << 14
	maxTokens     = 1 << 31 // batch × sequence
	maxAccumulate = 1 << 10
	maxLimitGiB   = 1 << 20
)

// choices are the keys whose values are names: what each can be, the default
// first.
var choices = map[string][]string{
	"precision":      names(FP32, TF32, AMPBF16, AMPFP16, BF16),
	"optimizer":      names(AdamW, Adam, SGD, SGDMomentum, NoOptimizer),
	"optimizer_impl": names(Foreach, Fused, Loop),
	"phase":          names(Train, Backward, Forward, Infer),
	"loss":           names(Labels, MeanLogits),
	"attention":      names(SDPA, Eager),
	"attention_mask": names(NoMask, Ones, Padded),
	"mode":           names(Training, Evaluation),
}

// Choices returns what a key can be, the default first; nil for a key that is
// no choice between names.
func Choices(key string) []string { return slices.Clone(choices[key]) }

func names[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// validate adds everything that is wrong with the values; the draft tells what
// was given and what is a default.
func (w *Workload) validate(wrong *InvalidError, d Draft) {
	for _, err := range []error{
		chosen("precision", w.Precision),
		chosen("optimizer", w.Optimizer),
		chosen("optimizer_impl", w.OptimizerImpl),
		chosen("phase", w.Phase),
		chosen("loss", w.Loss),
		chosen("attention", w.Attention),
		chosen("attention_mask", w.AttentionMask),
		chosen("mode", w.Mode),
		within("batch", w.Batch, 1, maxBatch),
		within("sequence", w.Sequence, 1, maxSequence),
		within("image", w.Image, 1, maxImage),
		within("accumulate", int64(w.Accumulate), 1, maxAccumulate),
	} {
		wrong.add(err)
	}
	if len(wrong.Problems) == 0 && w.Batch*w.Sequence > maxTokens {
		wrong.add(at("batch", fmt.Errorf("batch × sequence is %d × %d tokens; it must be at most 2³¹", w.Batch, w.Sequence)))
	}
	if _, given := d["limit_gib"]; given && !isNull(d["limit_gib"]) && (!(w.LimitGiB > 0) || w.LimitGiB > maxLimitGiB || math.IsNaN(w.LimitGiB)) {
		wrong.add(at("limit_gib", fmt.Errorf("limit_gib is %v; it must be above 0 and at most %d", w.LimitGiB, maxLimitGiB)))
	}
	if w.Config != nil {
		wrong.add(at("config", w.Config.checkFamily()))
		wrong.add(w.Config.checkSequence(w.Sequence))
	}
}

func chosen[T ~string](key string, value T) error {
	return at(key, oneOf(key, string(value), choices[key]))
}

func oneOf(what, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s is %q; it must be one of %s", what, value, strings.Join(allowed, ", "))
}

func within(key string, value, least, most int64) error {
	switch {
	case value < least:
		return at(key, fmt.Errorf("%s is %d; it must be at least %d", key, value, least))
	case value > most:
		return at(key, fmt.Errorf("%s is %d; it must be at most %d", key, value, most))
	default:
		return nil
	}
}

func positive(key string, value int64) error { return within(key, value, 1, math.MaxInt64) }
