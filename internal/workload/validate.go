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

// validate adds everything that is wrong with the values; the draft tells what
// was given and what is a default.
func (w *Workload) validate(wrong *InvalidError, d Draft) {
	for _, err := range []error{
		oneOf("precision", w.Precision, FP32, TF32, AMPBF16, AMPFP16, BF16),
		oneOf("optimizer", w.Optimizer, AdamW, Adam, SGD, SGDMomentum, NoOptimizer),
		oneOf("optimizer_impl", w.OptimizerImpl, Foreach, Fused, Loop),
		oneOf("phase", w.Phase, Train, Backward, Forward, Infer),
		oneOf("loss", w.Loss, Labels, MeanLogits),
		oneOf("attention", w.Attention, SDPA, Eager),
		oneOf("attention_mask", w.AttentionMask, NoMask, Ones, Padded),
		oneOf("mode", w.Mode, Training, Evaluation),
		within("batch", w.Batch, 1, maxBatch),
		within("sequence", w.Sequence, 1, maxSequence),
		within("image", w.Image, 1, maxImage),
		within("accumulate", int64(w.Accumulate), 1, maxAccumulate),
	} {
		wrong.add(err)
	}
	if len(wrong.Problems) == 0 && w.Batch*w.Sequence > maxTokens {
		wrong.add(fmt.Errorf("batch × sequence is %d × %d tokens; it must be at most 2³¹", w.Batch, w.Sequence))
	}
	if _, given := d["limit_gib"]; given && !isNull(d["limit_gib"]) && (!(w.LimitGiB > 0) || w.LimitGiB > maxLimitGiB || math.IsNaN(w.LimitGiB)) {
		wrong.add(fmt.Errorf("limit_gib is %v; it must be above 0 and at most %d", w.LimitGiB, maxLimitGiB))
	}
	if w.Config != nil {
		wrong.add(w.Config.checkFamily())
		wrong.add(w.Config.checkSequence(w.Sequence))
	}
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

func within(key string, value, least, most int64) error {
	switch {
	case value < least:
		return fmt.Errorf("%s is %d; it must be at least %d", key, value, least)
	case value > most:
		return fmt.Errorf("%s is %d; it must be at most %d", key, value, most)
	default:
		return nil
	}
}

func positive(key string, value int64) error { return within(key, value, 1, math.MaxInt64) }
