package torch

import "memorymark/internal/steptime"

// This file holds softmax over the last dimension
// (aten/src/ATen/native/SoftMax.cpp, native/cuda/SoftMax.cu).

// Softmax is torch.nn.functional.softmax(x, dim=-1, dtype=dtype); NoDType
// stands for no dtype. With a type of its own a float16 input goes straight
// into the kernel, any other is cast first; without one autocast asks for
// float32.
func (t *Torch) Softmax(x X, dtype DType) Value {
	in := t.retain(read(x))
	if dtype == NoDType && t.autocast != nil && in.DType.IsFloat() {
		dtype = Float32
	}
	switch {
	case dtype == NoDType, dtype == in.DType, dtype == Float32 && in.DType == Float16:
	default:
		in = t.replace(in, t.to(in, dtype))
	}
	if dtype == NoDType {
		dtype = in.DType
	}
	out := t.softmax(in, dtype)
	t.release(in)
	t.done(x)
	return Value{out}
}

// replace drops a tensor and returns its replacement.
func (t *Torch) replace(old, with *Tensor) *Tensor {
	t.release(old)
	return with
}

// softmax is _softmax: it saves its result. Its backward multiplies gradient
// and result into a temporary first (softmax_backward_cuda_out).
func (t *Torch) softmax(in *Tensor, dtype DType) *Tensor {
	since := t.moment()
	out := t.empty(dtype, in.Shape...)
	t.noteFused(since, steptime.Softmax, dtype, float64(in.bytes()+out.bytes()))
	t.release(t.contiguousPlain(in))
	if n := t.record("Softmax", in); n != nil {
		result := t.save(n, out)
		from := in.DType
		n.backward = func(g []*Tensor) []*Tensor {
			since := t.moment()
			grad := t.empty(from, result.Shape...)
			product := t.pointwise(g[0].DType, g[0], result)
			t.noteFused(since, steptime.SoftmaxBackward, result.DType, float64(grad.bytes()+g[0].bytes()+result.bytes()))
			t.release(t.contiguousPlain(product), product)
			return []*Tensor{grad}
		}
		n.setOutputs(out)
	}
	return out
}

// contiguousPlain is contiguous() inside a kernel, outside the graph.
func (t *Torch) contiguousPlain(x *Tensor) *Tensor {
	if x.isContiguous() {
		return t.retain(x)
	}
	since := t.moment()
	out := t.empty(x.DType, x.Shape...)
	t.noteFused(since, steptime.Strided, x.DType, float64(2*out.bytes()))
	return out
}
