package torch

import "slices"

// This file holds reductions over some dimensions.

// SumOver is x.sum(dims, keepdim) in a type, which is that of x if it is none. Its
// backward expands the gradient (sum_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) SumOver(x X, dims []int, keep bool, dtype DType) Value {
	in := t.retain(read(x))
	if in.DType.IsFloat() {
		in = t.replace(in, t.upper(in)) // on autocast's fp32 list
	}
	if dtype == NoDType {
		if dtype = in.DType; !dtype.IsFloat() && dtype != Complex64 {
			dtype = Int64
		}
	}
	out := t.reduced(in, dims, keep, dtype)
	if n := t.record("Sum", in); n != nil {
		shape := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return t.spread(g, shape, dims, keep) }
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

// reduced is a sum whose kernel casts its input while it reads only from halves.
func (t *Torch) reduced(in *Tensor, dims []int, keep bool, dtype DType) *Tensor {
	reduced := make([]bool, len(in.Shape))
	for _, d := range dims {
		reduced[(d+len(in.Shape))%len(in.Shape)] = true
	}
	out := t.empty(dtype, shapeWithout(in.Shape, reduced, keep)...)
	acc := max(4, dtype.Size())
	if dtype != in.DType && !in.DType.IsHalf() {
		wide := t.emptyLike(in, dtype)
		t.reduceScratch(wide, reduced, acc)
		t.release(wide)
		return out
	}
	t.reduceScratch(in, reduced, acc)
	return out
}

func shapeWithout(shape []int64, reduced []bool, keep bool) []int64 {
	var out []int64
	for i, s := range shape {
		switch {
		case !reduced[i]:
			out = append(out, s)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// spread expands the gradient of a reduction to its input's shape, a view.
func (t *Torch) spread(g *Tensor, shape []int64, dims []int, keep bool) *Tensor {
	wide := t.unreduced(g, shape, dims, keep)
	out := t.expand(wide, shape...)
	t.release(wide)
	return out
}

// unreduced gives a result of a reduction the dimensions again that it lost.
func (t *Torch) unreduced(g *Tensor, shape []int64, dims []int, keep bool) *Tensor {
	current := t.retain(g)
	if keep {
		return current
	}
	sorted := slices.Clone(dims)
	for i, d := range sorted {
		sorted[i] = (d + len(shape)) % max(len(shape), 1)
	}
	slices.Sort(sorted)
	for _, d := range sorted {
		next := t.Unsqueeze(Borrow(current), d).tensor
		t.release(current)
		current = next
	}
	return current
}

// MeanDims is x.mean(dims, keepdim). Its backward divides the expanded gradient.
func (t *Torch) MeanDims(x X, dims []int, keep bool) Value {
	in := read(x)
	out := t.sum(in, dims, keep, in.DType)
	if n := t.record("Mean", in); n != nil {
		shape := in.Shape
		n.gradient = func(g *Tensor) *Tensor {
			wide := t.spread(g, shape, dims, keep)
			out := t.pointwise(wide.DType, wide)
			t.release(wide)
			return out
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// Variance is x.var(dims, keepdim), or x.std with its result. The gradient of a variance
// is grad * (2 / n) * (x - mean); that of a deviation divides by twice the result first
// (var_backward, std_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Variance(x X, dims []int, keep, root bool) Value {
	in := read(x)
	reduced := make([]bool, len(in.Shape))
	for _, d := range dims {
		reduced[(d+len(in.Shape))%len(in.Shape)] = true
	}
	out := t.empty(in.DType, shapeWithout(in.Shape, reduced, keep)...)
	const welford = 16 // mean, sum of squares and counts
	t.reduceScratch(in, reduced, welford)
	name := map[bool]string{true: "Std", false: "Var"}[root]
	if n := t.record(name, in); n != nil {
		self := t.save(n, in)
		var result *Tensor
		if root {
			result = t.save(n, out)
		}
		n.gradient = func(g *Tensor) *Tensor {
			g = t.retain(g)
			if root {
				twice := t.pointwise(result.DType, result)
				quotient := t.pointwise(g.DType, g, twice)
				zero := t.pointwise(Bool, result)
				t.release(zero, twice)
				g = t.replace(g, quotient)
			}
			wide := t.unreduced(g, self.Shape, dims, keep)
			scaled := t.pointwise(wide.DType, wide)
			mean := t.sum(self, dims, true, self.DType)
			centered := t.pointwise(self.DType, self, mean)
			out := t.pointwise(scaled.DType, scaled, centered)
			t.release(centered, mean, scaled, wide, g)
			return out
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// Amax is x.amax(dims, keepdim) or amin. Its backward shares the gradient among equal
// elements: (grad * mask) / mask.sum (scale_grad_by_count).
func (t *Torch) Amax(x X, dims []int, keep bool) Value {
	in := read(x)
	out := t.sum(in, dims, keep, in.DType)
	if n := t.record("Amax", in); n != nil {
		self, result := t.save(n, in), t.save(n, out)
		n.gradient = func(g *Tensor) *Tensor {
			wide, restored := t.unreduced(g, self.Shape, dims, keep), t.unreduced(result, self.Shape, dims, keep)
			mask := t.pointwise(Bool, restored, self)
			product := t.pointwise(g.DType, wide, mask)
			count := t.reduced(mask, dims, true, Int64)
			out := t.pointwise(g.DType, product, count)
			t.release(count, product, mask, restored, wide)
			return out
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// LogSumExp is torch.logsumexp(x, dims, keepdim): the maxima, masked where they are
// infinite, then exp(x - maxima), its sum, and the logarithm. The gradient is
// grad * exp(x - result) (aten/src/ATen/native/ReduceOps.cpp, logsumexp_backward).
func (t *Torch) LogSumExp(x X, dims []int, keep bool) Value {
	in := t.upper(read(x))
	n := t.record("Logsumexp", in)
	maxima := t.sum(in, dims, true, in.DType)
	abs := t.pointwise(in.DType, maxima)
	t.release(t.pointwise(Bool, abs), abs)
	shifted := t.pointwise(in.DType, in, maxima) // whose exponential is taken in place
	out := t.sum(shifted, dims, keep, in.DType)
	t.release(shifted, maxima)
	if n != nil {
		self, result := t.save(n, in), t.save(n, out)
		n.gradient = func(g *Tensor) *Tensor {
			wide, restored := t.unreduced(g, self.Shape, dims, keep), t.unreduced(result, self.Shape, dims, keep)
			less := t.pointwise(self.DType, self, restored)
			exp := t.pointwise(less.DType, less)
			out := t.pointwise(g.DType, wide, exp)
			t.release(exp, less, restored, wide)
			return out
		}
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

// BoolOver is x.all(dims, keepdim) or x.any(dims, keepdim).
func (t *Torch) BoolOver(x X, dims []int, keep bool) Value {
	in := read(x)
	reduced := make([]bool, len(in.Shape))
	for _, d := range dims {
		reduced[(d+len(in.Shape))%len(in.Shape)] = true
	}
	out := t.empty(Bool, shapeWithout(in.Shape, reduced, keep)...)
	t.reduceScratch(in, reduced, Bool.Size())
	t.done(x)
	return Value{out}
}

// ArgMax is x.argmax(dim, keepdim) or argmin, which carries values and their indices
// while it reduces. Without a dimension the tensor is a vector.
func (t *Torch) ArgMax(x X, dims []int, keep bool) Value {
	in := read(x)
	reduced := make([]bool, len(in.Shape))
	for _, d := range dims {
		reduced[(d+len(in.Shape))%len(in.Shape)] = true
	}
	out := t.empty(Int64, shapeWithout(in.Shape, reduced, keep)...)
	t.reduceScratch(in, reduced, 16)
	t.done(x)
	return Value{out}
}

// MaxOver is x.max(dim, keepdim) or min: values and their indices, which are saved. The
// gradient is scattered into zeros (value_selecting_reduction_backward).
func (t *Torch) MaxOver(x X, dim int, keep bool) (values, indices Value) {
	in := read(x)
	dim = (dim + len(in.Shape)) % len(in.Shape)
	reduced := make([]bool, len(in.Shape))
	reduced[dim] = true
	top, places := t.largest(in, "Max", shapeWithout(in.Shape, reduced, keep))
	t.done(x)
	return Value{top}, Value{places}
}
