package torch

import "slices"

// Roll is torch.roll over several dimensions: a copy for each of them, the last
// of which is the result. Its backward rolls back
// (aten/src/ATen/native/cuda/TensorTransformations.cu, roll_common).
func (t *Torch) Roll(x X, dims int) Value {
	in := read(x)
	out := t.rolled(in, dims)
	if n := t.record("Roll", in); n != nil {
		n.gradient = func(g *Tensor) *Tensor { return t.rolled(g, dims) }
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

func (t *Torch) rolled(x *Tensor, dims int) *Tensor {
	out := t.retain(x)
	for range dims {
		out = t.replace(out, t.rollKernel(out))
	}
	return out
}

// rollKernel is roll_cuda.
func (t *Torch) rollKernel(x *Tensor) *Tensor {
	dense := t.contiguousPlain(x)
	out := t.empty(x.DType, x.Shape...)
	t.release(dense)
	return out
}

// PadImage is torch.nn.functional.pad(x, (0, 0, 0, n, 0, n)) of an image
// [batch, height, width, channels], a copy even if nothing is added
// (constant_pad_nd, aten/src/ATen/native/PadNd.cpp).
func (t *Torch) PadImage(x X, n int64) Value {
	in := read(x)
	shape := slices.Clone(in.Shape)
	shape[1] += n
	shape[2] += n
	out := t.empty(in.DType, shape...)
	if node := t.record("ConstantPadNd", in); node != nil {
		old := in.Shape
		node.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, old...) }
		node.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// Every is x[..., from::step, ...] of a dimension.
func (t *Torch) Every(x X, dim int, from, step int64) Value {
	in := read(x)
	shape, stride := slices.Clone(in.Shape), slices.Clone(in.stride)
	shape[dim] = divUp(in.Shape[dim]-from, step)
	stride[dim] *= step
	full := in.Shape
	out := t.makeView("Slice", in, shape, stride, func(g *Tensor) *Tensor { return t.empty(g.DType, full...) })
	t.done(x)
	return Value{out}
}

// MeanLastPool is torch.nn.functional.adaptive_avg_pool1d(x, 1) of a transposed
// [batch, n, channels]: a mean that is put in channels-last order, which
// backward undoes in a copy (aten/src/ATen/native/AdaptiveAveragePooling.cpp,
// as_strided_backward).
func (t *Torch) MeanLastPool(x X) Value {
	out := t.meanLast(read(x))
	t.stridedInPlace(out)
	t.done(x)
	return Value{out}
}
