package torch

// This file holds operators of losses that compare samples with each other.

// Sigmoid saves its result.
func (t *Torch) Sigmoid(x X) Value { return t.unary("Sigmoid", x, true) }

// Exp saves its result. Autocast computes it in float32.
func (t *Torch) Exp(x X) Value {
	in := t.upper(read(x))
	out := t.unary("Exp", Value{in}, true)
	t.done(x)
	return out
}

// LogSigmoid is torch.nn.functional.logsigmoid, whose buffer is empty on a GPU
// (aten/src/ATen/native/cuda/ActivationLogSigmoidKernel.cu).
func (t *Torch) LogSigmoid(x X) Value { return t.unary("LogSigmoid", x, false) }

// Quotient is a / b where both may need a gradient: that of b is -grad * ((a /
// b) / b) (div_tensor_other_grad, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Quotient(a, b X) Value {
	x, y := read(a), read(b)
	n := t.record("Div", x, y)
	if n != nil {
		other, self := t.save(n, y), t.save(n, x)
		n.backward = func(g []*Tensor) []*Tensor {
			out := make([]*Tensor, 2)
			if n.wants(1) {
				once := t.pointwise(resultType(self, other), self, other)
				twice := t.pointwise(resultType(once, other), once, other)
				negative := t.pointwise(g[0].DType, g[0])
				out[1] = t.pointwise(resultType(negative, twice), negative, twice)
				t.release(negative, twice, once)
			}
			if n.wants(0) {
				out[0] = t.pointwise(resultType(g[0], other), g[0], other)
			}
			return out
		}
	}
	out := t.pointwise(resultType(x, y), x, y)
	n.setOutputs(out)
	t.done(a, b)
	return Value{out}
}

// NormLast is x.norm(p=2, dim=-1, keepdim=True).
func (t *Torch) NormLast(x X) Value { return t.NormOver(x, -1) }

// NormOver is torch.linalg.vector_norm(x, dim=dims, keepdim=True), which returns
// float32 under autocast (autocast_mode.h, fp32_set_opt_dtype). Its backward is grad
// * (self / norm).masked_fill_(norm == 0, 0) (linalg_vector_norm_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) NormOver(x X, dims ...int) Value {
	in := read(x)
	dtype := in.DType
	if t.autocast != nil {
		dtype = Float32
	}
	out := t.sum(in, dims, true, dtype)
	if n := t.record("LinalgVectorNorm", in); n != nil {
		self, result := t.save(n, in), t.save(n, out)
		n.backward = func(g []*Tensor) []*Tensor {
			unit := t.pointwise(resultType(self, result), self, result)
			zero := t.pointwise(Bool, result)
			grad := t.pointwise(resultType(g[0], unit), g[0], unit)
			t.release(zero, unit)
			return []*Tensor{grad}
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}
