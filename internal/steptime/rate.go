package steptime

import (
	"fmt"
	"slices"

	"memorymark/internal/gpu"
)

// Type is what a launch computes in.
type Type uint8

// The types of launches.
const (
	FP32 Type = iota
	TF32
	FP16
	BF16
	FP64
	Int8
	FP8
)

var types = [...]string{"fp32", "tf32", "fp16", "bf16", "fp64", "int8", "fp8"}

func (t Type) String() string { return types[t] }

// MarshalText is the name of the type.
func (t Type) MarshalText() ([]byte, error) { return []byte(types[t]), nil }

// UnmarshalText reads the name of a type.
func (t *Type) UnmarshalText(text []byte) error {
	i := slices.Index(types[:], string(text))
	if i < 0 {
		return fmt.Errorf("no type of launch is called %q", text)
	}
	*t = Type(i)
	return nil
}

// bytes is the size of an element.
func (t Type) bytes() float64 {
	switch t {
	case FP16, BF16:
		return 2
	case FP64:
		return 8
	case Int8, FP8:
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
