package torch

// UpsampleBicubic is torch.nn.functional.interpolate(x, size, mode="bicubic").
// The result has the order of the dimensions of its input, channels last or
// not; backward makes a contiguous gradient of a contiguous one
// (aten/src/ATen/native/UpSampleBicubic2d.cpp, cuda/UpSampleBicubic2d.cu).
func (t *Torch) UpsampleBicubic(x X, height, width int64) Value {
	in := t.upper(read(x))
	shape := []int64{in.Shape[0], in.Shape[1], height, width}
	out := t.emptyStrided(in.DType, shape, in.suggestedStrides(shape))
	if n := t.record("UpsampleBicubic2D", in); n != nil {
		from := in.Shape
		n.backward = func(g []*Tensor) []*Tensor {
			grad := t.empty(g[0].DType, from...)
			t.release(t.contiguousInput(g[0]))
			return []*Tensor{grad}
		}
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

// MeanOver is x.mean(dim). Its backward divides the expanded gradient
// (mean_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) MeanOver(x X, dim int) Value {
	in := read(x)
	out := t.sum(in, []int{dim}, false, in.DType)
	if n := t.record("Mean", in); n != nil {
		shape := in.Shape
		n.backward = func(g []*Tensor) []*Tensor {
			wide := t.Expand(t.Unsqueeze(Borrow(g[0]), dim), shape...).tensor
			out := t.pointwise(wide.DType, wide)
			t.release(wide)
			return []*Tensor{out}
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}
