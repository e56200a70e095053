package steptime

import "memorymark/internal/gpu"

// Type is what a launch computes in.
type Type string

// The types whose rates cards have in their catalog.
const (
	FP32 Type = "fp32"
	TF32 Type = "tf32"
	FP16 Type = "fp16"
	BF16 Type = "bf16"
)

// bytes is the size of an element.
func (t Type) bytes() float64 {
	switch t {
	case FP16, BF16:
		return 2
	case "fp64":
		return 8
	case "int8", "fp8":
		return 1
	}
	return 4
}

// Peak is a card's peak rate in operations a second, and what computes: what
// its tensor cores do not have, the ordinary ones do, at the rate of fp32.
func Peak(card *gpu.Card, t Type) (rate float64, on Type) {
	rates := card.DenseTFLOPS
	switch {
	case t == TF32 && rates.TF32 > 0:
		return rates.TF32 * 1e12, TF32
	case t == BF16 && card.HasBF16() && max(rates.BF16, rates.FP16) > 0:
		return max(rates.BF16, rates.FP16) * 1e12, BF16
	case t.bytes() <= 2 && t != BF16 && max(rates.BF16, rates.FP16) > 0: // those of one byte are taken to be as fast
		return max(rates.BF16, rates.FP16) * 1e12, FP16
	}
	return rates.FP32 * 1e12, FP32
}
