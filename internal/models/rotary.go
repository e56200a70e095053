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
	long              torch.Value // frequencies of long sequences, once there was one
	longFrom          int64       // how long a sequence is before it is one
	of4               bool        // as transformers 4 has it
	size              int64       // of what is rotated of a head
	inFloat32         bool        // angles stay so
	broadcasts        bool        // positions times frequencies is no matrix product
	complex           bool        // cosines and sines are one tensor of complex numbers
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

// newRotary4 is the module in transformers 4: the frequencies are computed once,
// from steps that are cast, and original_inv_freq is another name for them.
func newRotary4(t *torch.Torch, kind RopeType, size int64) *rotary {
	r := &rotary{kind: kind, size: size, of4: true}
	t.As(trace.Parameter, func() {
		if kind == DefaultRope {
			r.inverse = inverseFrequencies(t, t.Floats(t.Arange(size/2)))
		} else {
			r.inverse = r.frequencies(t)
		}
	})
	r.original = t.Hold(r.inverse.Borrow()) // which is no buffer: casting leaves it as it is
	return r
}

// of is the module in other versions: transformers 5.22 multiplies with
// broadcasting instead of a matrix product.
func (r *rotary) of(v Versions) *rotary {
	r.broadcasts = !v.Transformers.Before(5, 22)
	return r
}

// initWeights is the part of _init_weights that is about the module.
func (r *rotary) initWeights(t *torch.Torch) { t.Drop(r.frequencies(t)) }

// initRotaries is the part of _init_weights of a model with several, one name for
// the frequencies of all.
func initRotaries(t *torch.Torch, rotaries []*rotary) {
	f := t.Enter()
	frequencies := f.Let(torch.Value{})
	for _, r := range rotaries {
		frequencies.Set(r.frequencies(t))
	}
	f.End()
}

// cast is model.to(dtype), which casts buffers too.
func (r *rotary) cast(t *torch.Torch, dtype torch.DType) {
	t.As(trace.Parameter, func() {
		r.inverse = t.CastBuffer(r.inverse, dtype)
		if !r.of4 && r.original != (torch.Value{}) {
			r.original = t.CastBuffer(r.original, dtype)
		}
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
	case LongRope:
		return longFrequencies(t, r.size/2)
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

// longFrequencies is _compute_longrope_parameters.
func longFrequencies(t *torch.Torch, n int64) torch.Value {
	f := t.Enter()
	factors := f.Let(t.Full(torch.Float32, n))
	steps := f.Let(t.Floats(t.Floats(t.Arange(n))))
	powers := t.Floats(steps)
	t.Drop(t.Full(torch.Int64))
	scaled := t.Floats(factors, powers)
	inverse := divided(t, scaled.Borrow())
	t.Drop(scaled)
	return f.Return(inverse)
}

// chooseLong is longrope_frequency_update, which runs before each forward pass: it
// computes the frequencies of a long sequence each time, since it looks for those
// that it has under another name, which it does not in transformers 4.
func (r *rotary) chooseLong(t *torch.Torch, positions *torch.Var) {
	f := t.Enter()
	f.Let(t.Integers(t.MaxOf(positions)))
	t.Drop(t.Full(torch.Bool)) // whether it is a long one
	chosen := t.Hold(r.original.Borrow())
	isLong := positions.Tensor().Dim(1) > r.longFrom
	if isLong {
		t.Drop(chosen)
		if r.of4 && r.long != (torch.Value{}) {
			chosen = t.Hold(r.long.Borrow())
		} else {
			chosen = r.frequencies(t)
		}
	}
	t.Drop(r.inverse)
	r.inverse = chosen
	if isLong {
		t.Drop(r.long)
		r.long = t.Hold(chosen.Borrow())
	}
	f.End()
}

// selectLong is longrope_frequency_update of transformers 5.22, which keeps the
// frequencies of long sequences, and selects by torch.where.
func (r *rotary) selectLong(t *torch.Torch, positions *torch.Var) {
	f := t.Enter()
	length := f.Let(t.Integers(t.MaxOf(positions)))
	if r.long == (torch.Value{}) {
		r.long = r.frequencies(t)
	}
	inverse := f.Let(t.Where(t.Compare(length), r.long.Borrow(), r.original.Borrow()))
	t.Drop(r.inverse)
	r.inverse = f.Keep(inverse)
	f.End()
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
	if r.complex {
		return r.complexAngles(t, positions), torch.Value{}
	}
	dtype, n := hidden.Tensor().DType, positions.Tensor().Dim(1)
	t.NoGrad(func() {
		switch {
		case r.kind == LongRope && r.broadcasts:
			r.selectLong(t, positions)
		case r.kind == LongRope:
			r.chooseLong(t, positions)
		}
		t.Autocast(torch.NoDType, func() {
			f := t.Enter()
			freqs := f.Let(r.frequenciesAt(t, f, positions, n))
			emb := f.Let(t.Cat(-1, freqs, freqs))
			c := f.Let(t.Scale(t.Floats(emb))) // emb.cos() * attention_scaling
			s := f.Let(t.Scale(t.Floats(emb)))
			if r.inFloat32 {
				dtype = torch.Float32
			}
			cos = t.To(c, dtype)
			sin = t.To(s, dtype)
			f.End()
		})
	})
	return cos, sin
}

// complexAngles is DeepseekV2RotaryEmbedding.forward: one complex number for both
// (transformers/models/deepseek_v2/modeling_deepseek_v2.py).
func (r *rotary) complexAngles(t *torch.Torch, positions *torch.Var) (cis torch.Value) {
	t.NoGrad(func() {
		t.Autocast(torch.NoDType, func() {
			f := t.Enter()
			freqs := f.Let(r.frequenciesAt(t, f, positions, positions.Tensor().Dim(1)))
			angles := f.Let(t.Complexes(t.FullLike(freqs), freqs)) // polar
			angles.Set(t.Complexes(angles))
			cis = f.Return(angles)
		})
	})
	return cis
}

// frequenciesAt are positions times frequencies.
func (r *rotary) frequenciesAt(t *torch.Torch, f *torch.Frame, positions *torch.Var, n int64) torch.Value {
	if r.broadcasts {
		return t.Mul(t.To(t.View(positions, 1, n, 1), torch.Float32), t.To(t.View(r.inverse.Borrow(), r.size/2), torch.Float32))
	}
	inverse := f.Let(t.To(t.View(r.inverse.Borrow(), 1, r.size/2, 1), torch.Float32))
	ids := f.Let(t.To(t.View(positions, 1, 1, n), torch.Float32))
	return t.Transpose(t.MatMul(inverse, ids), 1, 2)
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
