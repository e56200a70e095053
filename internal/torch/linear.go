package torch

import "memorymark/internal/trace"

// This file holds matrix products and the workspaces of the libraries that
// compute them.

// blas allocates the calling thread's cuBLAS workspace, which its first product
// makes and which stays (aten/src/ATen/cuda/CublasHandlePool.cpp,
// getChosenWorkspaceSize): 32 MiB on compute capability 9.0, else 8 MiB and a
// little.
func (t *Torch) blas() {
	if t.onCPU {
		return
	}
	if t.trace.Launched > 0 && t.trace.Multiplied == 0 {
		t.trace.Multiplied = len(t.trace.Events)
	}
	if t.workspacesPerCall() {
		t.As(trace.Workspace, func() { t.scratchSized(Device.cublasWorkspace) })
		return
	}
	if !t.threads[t.thread].cublas {
		t.threads[t.thread].cublas = true
		t.inModule(t.root, func() { t.As(trace.Workspace, func() { t.allocateSized(Device.cublasWorkspace) }) })
	}
}

func (d Device) cublasWorkspace() int64 {
	if d.isHopper() {
		return 4096 * 8 * 1024
	}
	return 4096*1024*2 + 16*1024*8
}

// blasLt also allocates the thread's cuBLASLt workspace, 1 MiB, for products
// with a bias (aten/src/ATen/native/cuda/Blas.cpp).
func (t *Torch) blasLt() {
	const size = 1 << 20
	if t.onCPU {
		return
	}
	if t.workspacesPerCall() {
		t.passingWorkspace(size)
		return
	}
	if t.Version.Before(2, 11) { // only for the call, as in recordings of 2.6 and 2.8
		var own *Tensor
		t.As(trace.Workspace, func() { own = t.empty(Bool, size) })
		t.blas()
		t.release(own)
		return
	}
	t.blas()
	if !t.threads[t.thread].cublasLt {
		t.threads[t.thread].cublasLt = true
		t.workspace(size)
	}
}

// workspacesPerCall reports whether every product allocates and frees its own
// workspace, as in recordings of PyTorch 2.15: neither handle keeps one.
func (t *Torch) workspacesPerCall() bool { return !t.Version.Before(2, 15) }

// mm is a product of matrices. An operand that is neither row- nor
// column-major is copied for the call (cuBlasCommonArgs.h).
func (t *Torch) mm(a, b *Tensor) *Tensor {
	since := t.moment()
	out := t.empty(a.DType, a.Shape[0], b.Shape[1])
	t.product(since, a, b)
	a, b = t.forBlas(a), t.forBlas(b)
	t.blas()
	t.release(a, b)
	return out
}

// forBlas returns a matrix as cuBLAS takes it; the caller releases it.
func (t *Torch) forBlas(x *Tensor) *Tensor {
	rows, cols := x.Shape[0], x.Shape[1]
	if x.stride[0] == 1 && x.stride[1] >= max(1, rows) || x.stride[1] == 1 && x.stride[0] >= max(1, cols) {
		return t.retain(x)
	}
	return t.empty(x.DType, x.Shape...)
}

// transposePlain returns a matrix transposed, outside the graph.
func (t *Torch) transposePlain(x *Tensor) *Tensor {
	return t.alias(x, t.reverseInts(x.Shape), t.reverseInts(x.stride))
}

// reverseInts returns the sizes or strides of a matrix in reverse.
func (t *Torch) reverseInts(of []int64) []int64 {
	out := t.ints.take(2)
	out[0], out[1] = of[1], of[0]
	return out
}

// t2 is Tensor.t().
func (t *Torch) t2(x *Tensor) *Tensor {
	return t.makeView("T", x, t.reverseInts(x.Shape), t.reverseInts(x.stride), t.transposePlain)
}

// addmm is bias + a·b for matrices.
func (t *Torch) addmm(bias, a, b *Tensor) *Tensor {
	n := t.record("Addmm", bias, a, b)
	if n != nil {
		columns := columnMajor(b)
		var left, right *Tensor
		if n.wants(2) {
			left = t.save(n, a)
		}
		if n.wants(1) {
			right = t.save(n, b)
		}
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(3)
			if n.wants(1) {
				out[1] = t.gradLeft(g[0], right)
			}
			if n.wants(2) {
				out[2] = t.gradOfRight(g[0], left, columns)
			}
			if n.wants(0) {
				out[0] = t.retain(g[0]) // the engine sums it to the bias
			}
			return out
		}
	}
	since := t.moment()
	out := t.empty(a.DType, a.Shape[0], b.Shape[1])
	t.product(since, a, b)
	if b.Shape[0] > 1 && b.Shape[1] > 1 {
		t.blasLt()
	} else {
		t.blas() // the bias is copied into the result first
	}
	n.setOutputs(out)
	return out
}

// gradLeft is the gradient of a in a·b (mm_mat1_grad): laid out as a row-major
// matrix.
func (t *Torch) gradLeft(grad, b *Tensor) *Tensor {
	bt := t.transposePlain(b)
	out := t.mm(grad, bt)
	t.release(bt)
	return out
}

// gradRight is the gradient of b in a·b. If b is column-major, as a
// transposed weight is, so is its gradient (mm_mat2_grad).
func (t *Torch) gradRight(a, grad *Tensor) *Tensor {
	gt := t.transposePlain(grad)
	out := t.mm(gt, a)
	t.release(gt)
	back := t.transposePlain(out)
	t.release(out)
	return back
}

// Linear is torch.nn.functional.linear with a bias or without
// (aten/src/ATen/native/Linear.cpp).
func (t *Torch) Linear(x X, m *Linear) Value {
	if m.lora != nil {
		return t.loraForward(x, m)
	}
	return t.base(x, m)
}

func (t *Torch) plainLinear(x X, m *Linear) Value {
	// Autocast casts the arguments of linear, which is on its lower list.
	bias, weight := t.lower(m.Bias), t.lower(m.Weight)
	in := t.lower(read(x))
	if m.split == columns {
		shared := t.sharedInput(in)
		t.release(in)
		in = shared
	}
	out := t.linear(in, &Linear{Weight: weight, Bias: bias})
	t.release(in, weight, bias)
	if m.split == rows {
		partial := out
		out = t.summedOutput(partial)
		t.release(partial)
	}
	t.done(x)
	return Value{out}
}

// LinearOf is torch.nn.functional.linear(x, weight) for a computed weight.
func (t *Torch) LinearOf(x, weight X) Value {
	out := t.plainLinear(x, &Linear{Weight: read(weight)})
	t.done(weight)
	return out
}

// BiasedLinearOf is torch.nn.functional.linear(x, weight, bias), likewise.
func (t *Torch) BiasedLinearOf(x, weight, bias X) Value {
	out := t.plainLinear(x, &Linear{Weight: read(weight), Bias: read(bias)})
	t.done(weight, bias)
	return out
}

func (t *Torch) linear(in *Tensor, m *Linear) *Tensor {
	last := len(in.Shape) - 1
	shape := t.cloneInts(in.Shape)
	shape[last] = m.Weight.Shape[0]
	switch {
	case m.Bias != nil && last == 1:
		w := t.t2(m.Weight)
		out := t.addmm(m.Bias, in, w)
		t.release(w)
		return out
	case m.Bias != nil && in.isContiguous():
		flat := t.reshape(in, product(in.Shape[:last]), in.Shape[last])
		w := t.t2(m.Weight)
		product := t.addmm(m.Bias, flat, w)
		t.release(w, flat)
		out := t.view(product, shape...)
		t.release(product)
		return out
	default:
		w := t.t2(m.Weight)
		out := t.matmul(in, w)
		t.release(w)
		if m.Bias != nil {
			t.addInPlace(out, m.Bias)
		}
		return out
	}
}

// addInPlace is x.add_(y): a node and no memory.
func (t *Torch) addInPlace(x, y *Tensor) {
	t.noteUpdate(x, y)
	n := t.record("Add", x, y)
	if n == nil {
		return
	}
	n.backward = func(g []*Tensor) []*Tensor { return t.handOn(n, g[0]) }
	if old := x.fn; old != nil {
		x.fn = nil
		t.releaseNode(old)
	}
	n.setOutputs(x)
}
