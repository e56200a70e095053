package models

import "memorymark/internal/torch"

// rotary is LlamaRotaryEmbedding and its copies: the frequencies that rotate
// queries and keys (transformers/models/llama/modeling_llama.py).
type rotary struct {
	inverse, original *torch.Tensor
	size              int64 // of a head
}

// newRotary makes the module. _init_weights computes the frequencies again
// and copies them over.
func newRotary(t *torch.Torch, size int64) *rotary {
	r := &rotary{size: size}
	r.inverse = r.frequencies(t)
	r.original = t.Buffer(torch.Float32, size/2)
	return r
}

// initWeights is the part of _init_weights that is about the module.
func (r *rotary) initWeights(t *torch.Torch) { t.Release(r.frequencies(t)) }

// cast is model.to(dtype), which casts buffers too.
func (r *rotary) cast(t *torch.Torch, dtype torch.DType) {
	for _, b := range []**torch.Tensor{&r.inverse, &r.original} {
		if (*b).DType != dtype {
			old := *b
			*b = t.Buffer(dtype, r.size/2)
			t.Release(old)
		}
	}
}

// frequencies is compute_default_rope_parameters:
// 1.0 / (base ** (arange(0, dim, 2) / dim)).
func (r *rotary) frequencies(t *torch.Torch) *torch.Tensor {
	n := r.size / 2
	steps := t.Buffer(torch.Float32, n)
	fractions := t.Buffer(torch.Float32, n)
	t.Release(steps)
	powers := t.Buffer(torch.Float32, n)
	t.Release(t.Buffer(torch.Int64)) // the base, a double on the device
	t.Release(fractions)
	reciprocal := t.Buffer(torch.Float32, n)
	inverse := t.Buffer(torch.Float32, n)
	t.Release(reciprocal)
	t.Release(powers)
	return inverse
}

// angles returns the cosines and sines of all positions, in the type of the
// hidden states.
func (r *rotary) angles(t *torch.Torch, hidden, positions *torch.Var) (cos, sin torch.Value) {
	dtype, n := hidden.Tensor().DType, positions.Tensor().Dim(1)
	t.NoGrad(func() {
		t.Autocast(torch.NoDType, func() {
			f := t.Enter()
			inverse := f.Let(t.To(t.View(torch.Borrow(r.inverse), 1, r.size/2, 1), torch.Float32))
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

// rotate is apply_rotary_pos_emb for queries or keys.
func rotate(t *torch.Torch, x torch.X, cos, sin *torch.Var) torch.Value {
	return t.Add(t.Mul(x, cos), t.Mul(rotateHalf(t, x), sin))
}

func rotateHalf(t *torch.Torch, x torch.X) torch.Value {
	f := t.Enter()
	whole := f.Let(x)
	n := whole.Tensor().Dim(-1)
	x1 := f.Let(t.Slice(whole, -1, 0, n/2))
	x2 := f.Let(t.Slice(whole, -1, n/2, n))
	return f.Return(t.Cat(-1, t.Neg(x2), x1))
}
