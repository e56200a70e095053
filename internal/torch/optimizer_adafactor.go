package torch

import "memorymark/internal/trace"

// This file is Adafactor: torch/optim/_adafactor.py, and the one of
// transformers (transformers/optimization.py), which its Trainer uses.

// factors is the state of a parameter: for a matrix a factor of its rows and
// one of its columns, for a vector the variance, in row.
type factors struct {
	row, col *Tensor
	rms      *Tensor // of transformers': the root of the mean square of the last step
}

// initFactors makes the state of a parameter once. keep says whether the
// dimension that a factor has lost stays, with size 1.
func (o *Optimizer) initFactors(p *Tensor, dtype DType, keep bool) *factors {
	if s := o.factors[p]; s != nil {
		return s
	}
	s := &factors{}
	o.factors[p] = s
	o.t.inModule(p.owner, func() {
		o.t.As(trace.OptimizerState, func() {
			if len(p.Shape) < 2 {
				s.row = o.t.emptyLike(p.grad, dtype)
				return
			}
			s.row = o.t.empty(dtype, dropDim(p.Shape, -1, keep)...)
			s.col = o.t.empty(dtype, dropDim(p.Shape, -2, keep)...)
		})
	})
	return s
}

// dropDim returns a shape without one of its last dimensions, or with size 1
// there.
func dropDim(shape []int64, dim int, keep bool) []int64 {
	var out []int64
	for i, size := range shape {
		switch {
		case i != len(shape)+dim:
			out = append(out, size)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// norm is x.norm(2), a scalar.
func (t *Torch) norm(x *Tensor) *Tensor { return t.sum(x, allDims(x), false, x.DType) }

func (o *Optimizer) stepAdafactor(params []*Tensor) {
	for _, p := range params {
		o.initFactors(p, p.grad.DType, true)
	}
	if o.impl == Foreach {
		o.foreachAdafactor(params)
	} else {
		o.loopAdafactor(params)
	}
}

// loopAdafactor is _single_tensor_adafactor. Its names keep the last
// parameter's tensors until this one binds them.
func (o *Optimizer) loopAdafactor(params []*Tensor) {
	t := o.t
	f := t.Enter()
	name := func() *Var { return f.Let(Value{}) }
	rowMean, colMean, estimate, squared, update := name(), name(), name(), name(), name()
	for _, p := range params {
		s := o.factors[p]
		t.release(t.norm(p))
		if len(p.Shape) > 1 {
			rowMean.Set(Value{t.sum(p.grad, []int{-1}, true, p.DType)})
			colMean.Set(Value{t.sum(p.grad, []int{-2}, true, p.DType)})
			estimate.Set(Value{t.outer(s)})
			t.release(t.sum(s.row, []int{-2}, true, p.DType)) // row_var.mean(dim=-2)
		} else {
			squared.Set(Value{t.emptyLike(p.grad, p.DType)})
			estimate.Set(Value{t.emptyLike(s.row, p.DType)})
		}
		update.Set(estimate)
		t.release(t.norm(update.tensor))
	}
	f.End()
}

// outer is row_var @ col_var.
func (t *Torch) outer(s *factors) *Tensor {
	return t.matmul(s.row, s.col)
}

// foreachAdafactor is _multi_tensor_adafactor: matrices first, then vectors, of
// each type. The estimates of a group exist at once, and until the next group's
// exist.
func (o *Optimizer) foreachAdafactor(params []*Tensor) {
	t := o.t
	var updates []*Tensor
	for _, group := range matricesFirst(params) {
		for _, p := range group {
			t.release(t.norm(p))
		}
		var estimates []*Tensor
		if len(group[0].Shape) > 1 {
			t.releaseList(mapTensors(group, func(p *Tensor) *Tensor { return t.sum(p.grad, []int{-1}, true, p.DType) }))
			t.releaseList(mapTensors(group, func(p *Tensor) *Tensor { return t.sum(p.grad, []int{-2}, true, p.DType) }))
			estimates = mapTensors(group, func(p *Tensor) *Tensor { return t.outer(o.factors[p]) })
			t.releaseList(mapTensors(group, func(p *Tensor) *Tensor { return t.sum(o.factors[p].row, []int{-2}, true, p.DType) }))
		} else {
			t.releaseList(mapTensors(group, func(p *Tensor) *Tensor { return t.emptyLike(p.grad, p.DType) }))
			estimates = mapTensors(group, func(p *Tensor) *Tensor { return t.emptyLike(p.grad, p.DType) })
		}
		t.releaseList(updates)
		updates = estimates
		for _, u := range updates {
			t.release(t.norm(u))
		}
	}
	t.releaseList(updates)
}

// matricesFirst groups parameters by type, and in each the matrices before the
// vectors (_group_tensors_by_device_dtype_and_is_multidim).
func matricesFirst(params []*Tensor) [][]*Tensor {
	var out [][]*Tensor
	for _, group := range byDType(params) {
		var matrices, vectors []*Tensor
		for _, p := range group {
			if len(p.Shape) > 1 {
				matrices = append(matrices, p)
			} else {
				vectors = append(vectors, p)
			}
		}
		for _, g := range [][]*Tensor{matrices, vectors} {
			if len(g) > 0 {
				out = append(out, g)
			}
		}
	}
	return out
}

func mapTensors(list []*Tensor, f func(*Tensor) *Tensor) []*Tensor {
	out := make([]*Tensor, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// transformersAdafactor is a step of transformers' Adafactor as its Trainer
// makes it: without a first moment, scaling by the parameter, and relative
// steps. It computes in float32. Its names are those of one function over all
// groups.
func (o *Optimizer) transformersAdafactor() {
	f := o.t.Enter()
	grad, data, update := f.Let(Value{}), f.Let(Value{}), f.Let(Value{})
	for _, group := range o.groups {
		for _, p := range withGradients(group) {
			grad.Set(o.t.To(Borrow(p.grad), Float32))
			s := o.initFactors(p, Float32, false)
			data.Set(o.t.To(Borrow(p), Float32))
			o.t.transformersUpdate(s, grad, data, update)
		}
	}
	f.End()
}

func (t *Torch) transformersUpdate(s *factors, grad, data, update *Var) {
	old := s.rms
	s.rms = t.rootMeanSquare(data.tensor)
	t.release(old)
	square := t.emptyLike(grad.tensor, Float32)
	sum := t.emptyLike(square, Float32) // grad**2 + eps
	t.release(square)
	update.Set(Value{sum})
	if s.col != nil {
		t.release(t.sum(sum, []int{-1}, false, Float32))
		t.release(t.sum(sum, []int{-2}, false, Float32))
		update.Set(Value{t.approximateSquare(s)})
	} else {
		update.Set(Value{t.emptyLike(s.row, Float32)})
	}
	rms := t.rootMeanSquare(update.tensor)
	clipped := t.empty(Float32)
	t.release(rms, clipped)
	t.release(t.emptyLike(update.tensor, Float32)) // -update
}

// rootMeanSquare is _rms.
func (t *Torch) rootMeanSquare(x *Tensor) *Tensor {
	norm := t.norm(x)
	out := t.empty(norm.DType)
	t.release(norm)
	return out
}

// approximateSquare is _approx_sq_grad.
func (t *Torch) approximateSquare(s *factors) *Tensor {
	mean := t.sum(s.row, []int{-1}, true, Float32)
	rows := t.emptyLike(s.row, Float32)
	t.release(mean)
	cols := t.emptyLike(s.col, Float32)
	last := len(s.row.Shape) - 1
	shape := append(append([]int64{}, s.row.Shape...), s.col.Shape[last])
	out := t.empty(Float32, shape...)
	t.release(rows, cols)
	return out
}
