package torch

// autocast is torch.autocast over a region (aten/src/ATen/autocast_mode.cpp).
type autocast struct {
	dtype DType
	cache *castCache
}

// castCache holds the casts of leaves, which the outermost region drops when it
// ends. PyTorch's is a hash map keyed by CPU addresses, so the order in which
// it drops them cannot be known; here it is the order of creation.
type castCache struct {
	casts map[*Tensor]*Tensor
	order []*Tensor
}

// Autocast runs a region under torch.autocast, or plainly if dtype is none. A
// nested region shares the cache of the outer one.
func (t *Torch) Autocast(dtype DType, region func()) {
	old := t.autocast
	switch {
	case old != nil:
		t.autocast = &autocast{dtype: dtype, cache: old.cache}
		region()
	case dtype == NoDType:
		region()
	default:
		t.autocast = &autocast{dtype: dtype, cache: &castCache{casts: make(map[*Tensor]*Tensor)}}
		region()
		for _, leaf := range t.autocast.cache.order {
			t.release(t.autocast.cache.casts[leaf])
		}
	}
	t.autocast = old
}

// AutocastUncached is Autocast with cache_enabled=False: a weight is cast at
// every use.
func (t *Torch) AutocastUncached(dtype DType, region func()) {
	if dtype != NoDType {
		t.autocast = &autocast{dtype: dtype}
	}
	region()
	t.autocast = nil
}

// castType is the type of the autocast region, none outside of one.
func (t *Torch) castType() DType {
	if t.autocast == nil {
		return NoDType
	}
	return t.autocast.dtype
}

// NoGrad runs a region under torch.no_grad.
func (t *Torch) NoGrad(region func()) {
	old := t.noGrad
	t.noGrad = true
	region()
	t.noGrad = old
}

// GradEnabled is torch.is_grad_enabled().
func (t *Torch) GradEnabled() bool { return !t.noGrad }

// Casting reports whether autocast is on.
func (t *Torch) Casting() bool { return t.castType() != NoDType }

// lower is cached_cast to the autocast type, for operators on its
// lower-precision list; the caller owns what it returns. Casts of float32
// leaves that need gradients are cached; activations are cast at every use.
// Operators cast their arguments from last to first.
func (t *Torch) lower(x *Tensor) *Tensor {
	if x == nil {
		return nil
	}
	dtype := t.castType()
	if dtype == NoDType || !x.DType.IsFloat() || x.DType == dtype {
		return t.retain(x)
	}
	if cache := t.autocast.cache; cache != nil && x.DType == Float32 && x.fn == nil && x.requiresGrad {
		if cache.casts[x] == nil {
			cache.casts[x] = t.to(x, dtype)
			cache.order = append(cache.order, x)
		}
		return t.retain(cache.casts[x])
	}
	return t.to(x, dtype)
}

// upper is cached_cast to float32, for operators on autocast's fp32 list; the
// caller owns what it returns.
func (t *Torch) upper(x *Tensor) *Tensor {
	if x == nil {
		return nil
	}
	if t.castType() == NoDType || !x.DType.IsHalf() {
		return t.retain(x)
	}
	return t.to(x, Float32)
}

// to is Tensor.to(dtype) where the type differs; its backward casts back.
func (t *Torch) to(x *Tensor, dtype DType) *Tensor { return t.toCopy(x, t.cast(x, dtype)) }

func (t *Torch) toCopy(x, out *Tensor) *Tensor {
	if n := t.record("ToCopy", x); n != nil {
		from := x.DType
		n.gradient = func(g *Tensor) *Tensor { return t.cast(g, from) }
		n.setOutputs(out)
	}
	return out
}

// cast copies a tensor into another type, outside the graph.
func (t *Torch) cast(x *Tensor, dtype DType) *Tensor {
	since := t.moment()
	out := t.emptyLike(x, dtype)
	t.noteElements(since, out, []*Tensor{x})
	return out
}

// To is x.to(dtype): the tensor itself if it has that type already.
func (t *Torch) To(x X, dtype DType) Value {
	in := read(x)
	if in.DType == dtype {
		return Value{t.own(x)}
	}
	return t.converted(x, t.to(in, dtype))
}

// ToContiguous is x.to(dtype, memory_format=torch.contiguous_format): the tensor itself,
// contiguous or not, if it has that type and is not in channels_last (to_will_alias,
// aten/src/ATen/native/TensorConversions.cpp).
func (t *Torch) ToContiguous(x X, dtype DType) Value {
	in := read(x)
	if in.DType == dtype && !in.looksChannelsLast() {
		return Value{t.own(x)}
	}
	since := t.moment()
	out := t.empty(dtype, in.Shape...)
	t.noteElements(since, out, []*Tensor{in})
	return t.converted(x, t.toCopy(in, out))
}

func (t *Torch) converted(x X, out *Tensor) Value {
	if t.meta != nil {
		t.meta.cast(read(x).storage, out.storage)
	}
	t.done(x)
	return Value{out}
}
