package torch

import "slices"

// This file holds operators that move elements.

// Flip is x.flip(dims): a copy; its backward flips the gradient
// (aten/src/ATen/native/TensorTransformations.cpp).
func (t *Torch) Flip(x X) Value {
	return t.unaryUnsaved("Flip", x, func(g *Tensor) *Tensor { return t.emptyLike(g, g.DType) })
}

// Triangle is x.triu(k) or x.tril(k), whatever the diagonal.
// A copy; its backward rolls back.
func (t *Torch) Triangle(x X) Value {
	in := read(x)
	out := t.empty(in.DType, in.Shape...)
	if n := t.record("Triu", in); n != nil {
		n.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, g.Shape...) }
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// Repeated is x.repeat(times): a copy. Its backward sums the gradient, seen with a
// dimension more for each that is repeated (repeat_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Repeated(x X, times []int64) Value {
	in := read(x)
	shape := slices.Clone(times)
	lead := len(times) - len(in.Shape)
	for i, s := range in.Shape {
		shape[lead+i] *= s
	}
	out := t.empty(in.DType, shape...)
	if n := t.record("Repeat", in); n != nil {
		old := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return t.repeatBackward(g, old, times) }
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

func (t *Torch) repeatBackward(g *Tensor, old, times []int64) *Tensor {
	lead := len(times) - len(old)
	grad := t.retain(g)
	if lead > 0 {
		var dims []int
		for i := range lead {
			dims = append(dims, i)
		}
		grad = t.replace(grad, t.sum(grad, dims, false, grad.DType))
	}
	var apart []int64
	var dims []int
	for i, n := range times[lead:] {
		if n != 1 {
			dims = append(dims, len(apart))
			apart = append(apart, n)
		}
		apart = append(apart, old[i])
	}
	if len(dims) == 0 {
		return grad
	}
	wide := t.reshapePlain(grad, apart)
	out := t.sum(wide, dims, false, wide.DType)
	t.release(wide, grad)
	return out
}

// SliceStep is x[..., from:to:step, ...] of a dimension.
func (t *Torch) SliceStep(x X, dim int, from, to, step int64) Value {
	in := read(x)
	shape, stride := slices.Clone(in.Shape), slices.Clone(in.stride)
	shape[dim] = max(divUp(to-from, step), 0)
	stride[dim] *= step
	full := in.Shape
	out := t.makeView("Slice", in, shape, stride, func(g *Tensor) *Tensor { return t.empty(g.DType, full...) })
	t.done(x)
	return Value{out}
}

// Windows is x.unfold(dim, size, step): a view of windows that may overlap. Its backward
// adds them into zeros (unfold_backward, aten/src/ATen/native/UnfoldBackward.cpp).
func (t *Torch) Windows(x X, dim int, size, step int64) Value {
	in := read(x)
	dim = (dim + len(in.Shape)) % len(in.Shape)
	shape, stride := slices.Clone(in.Shape), slices.Clone(in.stride)
	shape[dim] = (in.Shape[dim]-size)/step + 1
	shape, stride = append(shape, size), append(stride, in.stride[dim])
	stride[dim] *= step
	full := in.Shape
	out := t.makeView("Unfold", in, shape, stride, func(g *Tensor) *Tensor { return t.empty(g.DType, full...) })
	t.done(x)
	return Value{out}
}

// Diagonal is x.diagonal(dim1, dim2): a view; its backward fills zeros.
func (t *Torch) Diagonal(x X, a, b int) Value {
	in := read(x)
	a, b = (a+len(in.Shape))%len(in.Shape), (b+len(in.Shape))%len(in.Shape)
	var shape, stride []int64
	for i := range in.Shape {
		if i != a && i != b {
			shape, stride = append(shape, in.Shape[i]), append(stride, in.stride[i])
		}
	}
	shape, stride = append(shape, min(in.Shape[a], in.Shape[b])), append(stride, in.stride[a]+in.stride[b])
	full := in.Shape
	out := t.makeView("Diagonal", in, shape, stride, func(g *Tensor) *Tensor { return t.empty(g.DType, full...) })
	t.done(x)
	return Value{out}
}

// PadDims is torch.nn.functional.pad with a constant: how many elements before and after
// each of the last dimensions, the last one first. It copies even if nothing is added; its
// backward pads by negative numbers, which copies what is left (constant_pad_nd,
// aten/src/ATen/native/PadNd.cpp).
func (t *Torch) PadDims(x X, widths []int64) Value {
	in := read(x)
	shape := slices.Clone(in.Shape)
	for i := 0; i < len(widths); i += 2 {
		shape[len(shape)-1-i/2] += widths[i] + widths[i+1]
	}
	padded := func(x *Tensor, shape []int64) *Tensor {
		if slices.Equal(x.Shape, shape) {
			return t.emptyLike(x, x.DType) // a clone
		}
		return t.emptyImage(x.DType, x.looksChannelsLast(), shape...)
	}
	out := padded(in, shape)
	if n := t.record("ConstantPadNd", in); n != nil {
		old := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return padded(g, old) }
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// PadBy is padding by a mode that repeats elements (reflect, replicate); its backward adds
// into zeros (aten/src/ATen/native/cuda/ReflectionPad.cu).
func (t *Torch) PadBy(x X, widths []int64) Value {
	in := read(x)
	shape := slices.Clone(in.Shape)
	for i := 0; i < len(widths); i += 2 {
		shape[len(shape)-1-i/2] += widths[i] + widths[i+1]
	}
	dense := t.contiguousPlain(in)
	out := t.empty(in.DType, shape...)
	t.release(dense)
	if n := t.record("ReflectionPad", in); n != nil {
		self := t.save(n, in)
		n.gradient = func(g *Tensor) *Tensor {
			out := t.empty(g.DType, self.Shape...)
			t.release(t.contiguousPlain(g))
			return out
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// Resized is torch.nn.functional.interpolate to a size. The result has the order of its
// input; the gradient of a contiguous one is contiguous
// (aten/src/ATen/native/cuda/UpSample*.cu). Autocast computes it in float32
// (aten/src/ATen/autocast_mode.h, AT_FORALL_FP32).
func (t *Torch) Resized(x X, size ...int64) Value {
	in := t.upper(read(x))
	shape := append(slices.Clone(in.Shape[:2]), size...)
	out := t.emptyStrided(in.DType, shape, in.suggestedStrides(shape))
	if n := t.record("Upsample", in); n != nil {
		from := in.Shape
		last := in.looksChannelsLast()
		n.gradient = func(g *Tensor) *Tensor {
			grad := t.emptyImage(g.DType, last, from...)
			if !last {
				t.release(t.contiguousInput(g))
			}
			return grad
		}
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

// Patches is torch.nn.functional.unfold: columns of an image's windows (im2col). Its
// backward is fold.
func (t *Torch) Patches(x X, kernel, stride, padding, dilation [2]int64) Value {
	in := read(x)
	places := int64(1)
	for i := range 2 {
		places *= (in.Shape[2+i]+2*padding[i]-dilation[i]*(kernel[i]-1)-1)/stride[i] + 1
	}
	out := t.empty(in.DType, in.Shape[0], in.Shape[1]*kernel[0]*kernel[1], places)
	if n := t.record("Im2Col", in); n != nil {
		from := in.Shape
		n.gradient = func(g *Tensor) *Tensor {
			out := t.empty(g.DType, from...)
			t.release(t.contiguousPlain(g))
			return out
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// Folded is torch.nn.functional.fold: an image of its windows' columns (col2im). Its backward
// is unfold.
func (t *Torch) Folded(x X, channels, height, width int64) Value {
	in := read(x)
	dense := t.contiguousPlain(in)
	out := t.empty(in.DType, in.Shape[0], channels, height, width)
	t.release(dense)
	if n := t.record("Col2Im", in); n != nil {
		from := in.Shape
		n.gradient = func(g *Tensor) *Tensor {
			dense := t.contiguousPlain(g)
			out := t.empty(g.DType, from...)
			t.release(dense)
			return out
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}
