package torch

import "memorymark/internal/steptime"

// MaxPool2d is torch.nn.functional.max_pool2d: the result, then the index of
// each maximum as int64, which is made whether a backward needs it or not
// (aten/src/ATen/native/cuda/DilatedMaxPool2d.cu).
func (t *Torch) MaxPool2d(x X, kernel, stride, padding int64) Value {
	in := read(x)
	last := in.looksChannelsLast()
	shape := []int64{in.Shape[0], in.Shape[1], windowOut(in.Shape[2], kernel, stride, padding), windowOut(in.Shape[3], kernel, stride, padding)}
	since := t.moment()
	out := t.emptyImage(in.DType, last, shape...)
	indices := t.emptyImage(Int64, last, shape...)
	moved := float64(in.bytes() + out.bytes() + indices.bytes())
	t.noteFused(since, steptime.MaxPool, in.DType, moved)
	if n := t.record("MaxPool2DWithIndices", in); n != nil {
		in := t.save(n, in)
		t.save(n, indices)
		n.backward = func(g []*Tensor) []*Tensor {
			since := t.moment()
			zeros := t.emptyImage(in.DType, last, in.Shape...)
			t.noteFused(since, steptime.MaxPoolBackward, in.DType, moved)
			dense := t.contiguousImage(g[0], last)
			t.release(dense)
			return []*Tensor{zeros}
		}
		n.setOutputs(out)
	}
	t.release(indices)
	t.done(x)
	return Value{out}
}

// GlobalAvgPool2d is adaptive_avg_pool2d to one pixel, which is a mean over the
// image; its backward makes a tensor of the full size. The mean of an image in
// channels_last gets that order, which backward undoes with a copy
// (aten/src/ATen/native/AdaptiveAveragePooling.cpp, mean_backward,
// as_strided_backward).
func (t *Torch) GlobalAvgPool2d(x X) Value {
	in := read(x)
	out := t.sum(in, []int{2, 3}, true, in.DType)
	if n := t.record("Mean", in); n != nil {
		shape := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, shape...) }
		n.setOutputs(out)
	}
	if in.looksChannelsLast() {
		out.stride = channelsLastStrides(out.Shape)
		t.stridedInPlace(out)
	}
	t.done(x)
	return Value{out}
}

// stridedInPlace is x.as_strided_(…) of all its elements.
func (t *Torch) stridedInPlace(x *Tensor) {
	if n := t.record("AsStrided", x); n != nil {
		n.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, g.Shape...) }
		t.setHistory(x, n)
	}
}

// MeanOfImages is x.mean([-2, -1]) of images.
func (t *Torch) MeanOfImages(x X) Value {
	in := read(x)
	out := t.sum(in, []int{2, 3}, false, in.DType)
	if n := t.record("Mean", in); n != nil {
		shape := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, shape...) }
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// Flatten is x.flatten(from) of a contiguous tensor, a view.
func (t *Torch) Flatten(x X, from int) Value {
	in := read(x)
	shape := append(append([]int64{}, in.Shape[:from]...), -1)
	return t.Reshape(x, shape...)
}
