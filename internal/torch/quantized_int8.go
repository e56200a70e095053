package torch

// This file is MatMul8bitLt of bitsandbytes 0.50: inputs are quantized row by
// row, integers are multiplied, and the product is scaled
// (bitsandbytes/autograd/_functions.py, backends/cuda/ops.py). Inputs beyond the
// threshold of 6.0, which would be computed separately, are assumed not to
// occur.

// linear8Bit is Linear8bitLt.forward.
func (t *Torch) linear8Bit(x X, m *Linear) Value {
	in := read(x)
	if m.Bias != nil {
		t.castData(m.Bias, in.DType)
	}
	t.claim([]*Tensor{m.Weight})
	n := t.record("MatMul8bitLt", in)
	var out *Tensor
	t.NoGrad(func() {
		flat := t.reshape(in, -1, in.Dim(-1))
		values, scales := t.quantizedRows(flat)
		product := t.scaledProduct(flat, m)
		if n != nil {
			n.kept = append(n.kept, t.retain(flat)) // ctx.tensors, which backward does not drop
		}
		shape := append(append([]int64{}, in.Shape[:len(in.Shape)-1]...), m.quantized.out)
		out = t.view(product, shape...)
		t.release(product, values, scales, flat)
	})
	if n != nil {
		shape := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return t.backward8Bit(g, m.quantized, shape, in.DType) }
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// quantizedRows is int8_vectorwise_quant of the inputs in float16.
func (t *Torch) quantizedRows(in *Tensor) (values, scales *Tensor) {
	var half *Tensor
	if in.DType != Float16 {
		half = t.emptyLike(in, Float16)
	}
	scales = t.empty(Float32, in.Shape[0])
	values = t.empty(Uint8, in.Shape...)
	absolute := t.empty(Float16, in.Shape...)
	outliers := t.empty(Bool, in.Shape...)
	t.release(absolute)
	t.Drop(t.All(Borrow(outliers))) // any
	t.release(t.empty(Uint8))       // the zero that is put into columns of outliers
	t.release(outliers, half)
	return values, scales
}

// scaledProduct is int8_scaled_mm: integers, then float16, then the input's
// type.
func (t *Torch) scaledProduct(in *Tensor, m *Linear) *Tensor {
	integers := t.empty(Int32, in.Shape[0], m.quantized.out)
	half := t.empty(Float16, in.Shape[0], m.quantized.out)
	out := half
	if in.DType != Float16 {
		out = t.emptyLike(half, in.DType)
		t.release(half)
	}
	t.release(integers)
	return out
}

// backward8Bit multiplies by the weight in the input's type.
func (t *Torch) backward8Bit(grad *Tensor, q *quantized, shape []int64, dtype DType) *Tensor {
	flat := t.reshapePlain(grad, []int64{product(grad.Shape[:len(grad.Shape)-1]), grad.Dim(-1)})
	dense := t.contiguousInput(flat)
	weight := t.empty(dtype, q.out, q.in)
	t.release(t.empty(Float32, q.out, 1)) // the scales
	cast := t.retain(dense)
	if dense.DType != dtype {
		t.release(cast)
		cast = t.emptyLike(dense, dtype)
	}
	out := t.mm(cast, weight)
	viewed := t.alias(out, shape, contiguousStrides(shape))
	t.release(cast, out, dense, flat, weight)
	return viewed
}
