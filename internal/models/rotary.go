package models

import (
	"memorymark/internal/torch"
	"memorymark/internal/trace"
)

// rotary is LlamaRotaryEmbedding and its copies: the frequencies that rotate
// queries and keys (transformers/models/llama/modeling_llama.py).
type rotary struct {
	kind              RopeType
	inverse, original torch.Value
	size              int64 // of what is rotated of a head
}

// newRotary makes the module. _init_weights computes the frequencies again
// and copies them over.
func newRotary(t *torch.Torch, kind RopeType, size int64) *rotary {
	r := &rotary{kind: kind, size: size}
	t.As(trace.Parameter, func() {
		r.inverse = r.frequencies(t)
		r.original = t.Clone(r.inverse.Borrow())
	})
	return r
}

// cast is model.to(dtype), which casts buffers too.
func (r *rotary) cast(t *torch.Torch, dtype torch.DType) {
	t.As(trace.Parameter, func() {
		r.inverse = t.CastBuffer(r.inverse, dtype)
		r.original = t.CastBuffer(r.original, dtype)
	})
}

// frequencies is compute_default_rope_parameters, or the function of another
// type of rotary positions (transformers/modeling_rope_utils.py).
func (r *rotary) frequencies(t *torch.Torch) torch.Value {
	switch r.kind {
	case Llama3Rope:
		return llama3Frequencies(t, inverseFrequencies(t, t.Floats(t.Arange(r.size/2))))
	case YarnRope:
		return yarnFrequencies(t, powersOf(t, t.Floats(t.Arange(r.size/2))))
	case LinearRope: // divides in place
		return inverseFrequencies(t, t.Floats(t.Arange(r.size/2)))
	default:
		return inverseFrequencies(t, t.Full(torch.Float32, r.size/2))
	}
}

// inverseFrequencies is 1.0 / (base ** (steps / dim)): a number before / is
// multiplied with the reciprocal, one before ** becomes a double on the device.
func inverseFrequencies(t *torch.Torch, steps torch.Value) torch.Value {
	powers := powersOf(t, steps)
	inverse := divided(t, powers.Borrow())
	t.Drop(powers)
	return inverse
}

// powersOf is base ** (steps / dim).
func powersOf(t *torch.Torch, steps torch.Value) torch.Value {
	fractions := t.Floats(steps)
	powers := t.Floats(fractions.Borrow())
	t.Drop(t.Full(torch.Int64))
	t.Drop(fractions)
	return powers
}

// divided is a number / x.
func divided(t *torch.Torch, x torch.X) torch.Value { return t.Floats(t.Floats(x)) }

// llama3Frequencies is the rest of _compute_llama3_parameters: low frequencies
// are scaled, those in the middle smoothly.
func llama3Frequencies(t *torch.Torch, inverse torch.Value) torch.Value {
	f := t.Enter()
	freq := f.Let(inverse)
	wavelen := f.Let(divided(t, freq))
	scaled := f.Let(t.Floats(t.Compare(wavelen), t.Floats(freq), freq)) // where
	smooth := f.Let(t.Floats(t.Floats(divided(t, wavelen))))
	smoothed := f.Let(t.Floats(t.Floats(t.Floats(t.Floats(smooth), scaled)), t.Floats(smooth, scaled)))
	medium := f.Let(t.Compare(t.Compare(t.Compare(wavelen)), t.Compare(t.Compare(wavelen))))
	scaled.Set(t.Floats(medium, smoothed, scaled)) // where
	return f.Return(scaled)
}

// yarnFrequencies is the rest of _compute_yarn_parameters: frequencies between those
// that are kept and those that are scaled.
func yarnFrequencies(t *torch.Torch, powers torch.Value) torch.Value {
	f := t.Enter()
	freqs := f.Let(powers)
	kept := f.Let(divided(t, freqs))
	longer := t.Floats(freqs)
	scaled := f.Let(divided(t, longer.Borrow()))
	t.Drop(longer)
	share := f.Let(t.Floats(yarnRamp(t, freqs.Tensor().Dim(0))))
	return f.Return(t.Floats(t.Floats(scaled, t.Floats(share)), t.Floats(kept, share)))
}

// yarnRamp is linear_ramp_factor.
func yarnRamp(t *torch.Torch, n int64) torch.Value {
	f := t.Enter()
	line := f.Let(t.Floats(t.Floats(t.Full(torch.Float32, n))))
	return f.Return(f.Let(t.Floats(line))) // clamp
}

// angles returns the cosines and sines of all positions, in the type of the
// hidden states.
func (r *rotary) angles(t *torch.Torch, hidden, positions *torch.Var) (cos, sin torch.Value) {
	dtype, n := hidden.Tensor().DType, positions.Tensor().Dim(1)
	t.NoGrad(func() {
		t.Autocast(torch.NoDType, func() {
			f := t.Enter()
			inverse := f.Let(t.To(t.View(r.inverse.Borrow(), 1, r.size/2, 1), torch.Float32))
			ids := f.Let(t.To(t.View(positions, 1, 1, n), torch.Float32))
			freqs := f.Let(t.Transpose(t.MatMul(inverse, ids), 1, 2))
			emb := f.Let(t.Cat(-1, freqs, freqs))
			c := f.Let(t.Scale(t.Floats(emb))) // emb.cos() * attention_scaling
			s := f.Let(t.Scale(t.Floats(emb)))
			cos = t.To(c, dtype)
			sin = t.To(s, dtype)
			f.End()
		})
	})
	return cos, sin
}

// applyRotary is apply_rotary_pos_emb; the names then stand for what was
// rotated.
func applyRotary(t *torch.Torch, q, k, cosines, sines *torch.Var) {
	f := t.Enter()
	cos, sin := f.Let(t.Unsqueeze(cosines, 1)), f.Let(t.Unsqueeze(sines, 1))
	rotate := func(x *torch.Var) torch.Value {
		return f.Keep(f.Let(t.Add(t.Mul(x, cos), t.Mul(rotateHalf(t, x), sin))))
	}
	newQ, newK := rotate(q), rotate(k)
	f.End()
	q.Set(newQ)
	k.Set(newK)
}

func rotateHalf(t *torch.Torch, x *torch.Var) torch.Value {
	f := t.Enter()
	n := x.Tensor().Dim(-1)
	x1 := f.Let(t.Slice(x, -1, 0, n/2))
	x2 := f.Let(t.Slice(x, -1, n/2, n))
	return f.Return(t.Cat(-1, t.Neg(x2), x1))
}
