package torch

// autocast is torch.autocast over a region (aten/src/ATen/autocast_mode.cpp).
type autocast struct {
	dtype DType
	cache map[*Tensor]*Tensor // casts of leaves, kept until the region ends
	order []*Tensor           // of the cache, as it was filled
}

// Autocast runs a region under torch.autocast, or plainly if dtype is none.
func (t *Torch) Autocast(dtype DType, region func()) {
	if dtype == NoDType {
		region()
		return
	}
	old := t.autocast
	t.autocast = &autocast{dtype: dtype, cache: make(map[*Tensor]*Tensor)}
	region()
	for _, leaf := range t.autocast.order {
		t.release(t.autocast.cache[leaf])
	}
	t.autocast = old
}

// NoGrad runs a region under torch.no_grad.
func (t *Torch) NoGrad(region func()) {
	old := t.noGrad
	t.noGrad = true
	region()
	t.noGrad = old
}

// lower is cached_cast to the autocast type, for operators on its
// lower-precision list; the caller owns what it returns. Casts of float32
// leaves that need gradients are cached; activations are cast at every use.
// Operators cast their arguments from last to first.
func (t *Torch) lower(x *Tensor) *Tensor {
	if x == nil {
		return nil
	}
	a := t.autocast
	if a == nil || !x.DType.IsFloat() || x.DType == a.dtype {
		return t.retain(x)
	}
	if x.DType == Float32 && x.fn == nil && x.requiresGrad {
		if a.cache[x] == nil {
			a.cache[x] = t.to(x, a.dtype)
			a.order = append(a.order, x)
		}
		return t.retain(a.cache[x])
	}
	return t.to(x, a.dtype)
}

// upper is cached_cast to float32, for operators on autocast's fp32 list; the
// caller owns what it returns.
func (t *Torch) upper(x *Tensor) *Tensor {
	if x == nil {
		return nil
	}
	if t.autocast == nil || !x.DType.IsHalf() {
		return t.retain(x)
	}
	return t.to(x, Float32)
}

// to is Tensor.to(dtype) where the type differs; its backward casts back.
func (t *Torch) to(x *Tensor, dtype DType) *Tensor {
	out := t.emptyLike(x, dtype)
	if n := t.record("ToCopy", x); n != nil {
		from := x.DType
		n.backward = func(g []*Tensor) []*Tensor { return []*Tensor{t.emptyLike(g[0], from)} }
		n.made(out)
	}
	return out
}

// To is x.to(dtype): the tensor itself if it has that type already.
func (t *Torch) To(x X, dtype DType) Value {
	in := read(x)
	if in.DType == dtype {
		return Value{t.own(x)}
	}
	out := t.to(in, dtype)
	t.done(x)
	return Value{out}
}
