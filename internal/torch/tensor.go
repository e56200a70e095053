package torch

import (
	"math/bits"
	"slices"

	"memorymark/internal/trace"
)

// DType is the type of a tensor's elements.
type DType uint8

// The types that training uses.
const (
	NoDType DType = iota
	Float32
	BFloat16
	Float16
	Int64
	Int32
	Bool
	Uint8
	Complex64
)

var dtypeSizes = [...]int64{NoDType: 0, Float32: 4, BFloat16: 2, Float16: 2, Int64: 8, Int32: 4, Bool: 1, Uint8: 1, Complex64: 8}

// Size returns the bytes of an element.
func (d DType) Size() int64 { return dtypeSizes[d] }

// IsHalf reports whether the type is one of the 16-bit floats.
func (d DType) IsHalf() bool { return d == BFloat16 || d == Float16 }

// IsFloat reports whether gradients can flow through the type.
func (d DType) IsFloat() bool { return d == Float32 || d.IsHalf() }

// Tensor is a TensorImpl: a view of a storage, with its node in the autograd
// graph.
type Tensor struct {
	Shape  []int64
	stride []int64
	DType  DType

	storage      *storage
	refs         int
	base         *Tensor // of a view
	requiresGrad bool
	unread       bool  // a parameter that no operator has read yet
	split        bool  // a parameter whose other parts are on other ranks
	oddDecay     bool  // a vector that is decayed, or a matrix that is not
	packed       bool  // two elements to a byte, as bitsandbytes' of four bits are
	fn           *node // what made it, nil for a leaf
	output       int   // which output of fn it is
	grad         *Tensor
	accumulate   *node      // of a leaf, while the graph refers to it
	owner        *module    // of a parameter
	name         string     // of a parameter in its module, "" for weight
	second       *secondRun // that made it, nil for none
}

// Numel returns the number of elements.
func (x *Tensor) Numel() int64 { return product(x.Shape) }

func (x *Tensor) bytes() int64 {
	if x.packed {
		return (x.Numel() + 1) / 2
	}
	return x.Numel() * x.DType.Size()
}

// Dim returns a size; negative dimensions count from the end.
func (x *Tensor) Dim(i int) int64 {
	if i < 0 {
		i += len(x.Shape)
	}
	return x.Shape[i]
}

// RequireGrad is x.requires_grad = True on a tensor that nothing was computed
// for.
func (x *Tensor) RequireGrad() { x.requiresGrad = true }

// Freeze is x.requires_grad = False on a leaf.
func (x *Tensor) Freeze() { x.requiresGrad = false }

// IsFloatingPoint is x.is_floating_point().
func (x *Tensor) IsFloatingPoint() bool { return x.DType.IsFloat() }

// IsView reports whether the tensor is a view of another.
func (x *Tensor) IsView() bool { return x.base != nil }

// IsContiguous is x.is_contiguous().
func (x *Tensor) IsContiguous() bool { return x.isContiguous() }

// Strides is x.stride().
func (x *Tensor) Strides() []int64 { return x.stride }

// RequiresGrad is x.requires_grad.
func (x *Tensor) RequiresGrad() bool { return x.requiresGrad }

// maxElements is beyond all memory, and small enough that its bytes do not
// overflow.
const maxElements = 1 << 59

// product multiplies sizes, up to maxElements: a larger product fits no card
// and must not overflow.
func product(sizes []int64) int64 {
	n := uint64(1)
	for _, s := range sizes {
		high, low := bits.Mul64(n, uint64(s))
		if n = low; high != 0 || low > maxElements {
			n = maxElements
		}
	}
	return int64(n)
}

// contiguousStrides are those of a dense tensor in row-major order.
func contiguousStrides(shape []int64) []int64 { return fillStrides(make([]int64, len(shape)), shape) }

func fillStrides(strides, shape []int64) []int64 {
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = n
		n *= max(shape[i], 1)
	}
	return strides
}

// isContiguous is TensorImpl::compute_contiguous: the strides of dimensions of
// size 1 do not matter.
func (x *Tensor) isContiguous() bool {
	n := int64(1)
	for i := len(x.Shape) - 1; i >= 0; i-- {
		if x.Shape[i] != 1 {
			if x.stride[i] != n {
				return false
			}
			n *= x.Shape[i]
		}
	}
	return true
}

// isDense reports whether the elements fill a range of memory without overlap,
// in whatever order (TensorImpl::compute_non_overlapping_and_dense).
func (x *Tensor) isDense() bool {
	if x.isContiguous() {
		return true
	}
	order := make([]int, len(x.Shape))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case x.Shape[a] < 2:
			return 1
		case x.Shape[b] < 2:
			return -1
		default:
			return int(x.stride[a] - x.stride[b])
		}
	})
	n := int64(1)
	for _, i := range order {
		if x.Shape[i] < 2 {
			continue
		}
		if x.stride[i] != n {
			return false
		}
		n *= x.Shape[i]
	}
	return true
}

// empty makes a dense tensor that only the caller refers to.
func (t *Torch) empty(dtype DType, shape ...int64) *Tensor {
	own := t.cloneInts(shape) // so that variadic arguments do not escape to Go's heap
	return t.emptyStrided(dtype, own, fillStrides(t.ints.take(len(own)), own))
}

func (t *Torch) emptyStrided(dtype DType, shape, stride []int64) *Tensor {
	bytes := product(shape) * dtype.Size()
	t.countWrite(dtype, bytes)
	x := t.newTensor()
	*x = Tensor{Shape: shape, stride: stride, DType: dtype, refs: 1, storage: t.allocate(bytes)}
	if t.category == trace.Parameter {
		t.built = append(t.built, x)
	}
	return t.track(x)
}

// track records a tensor that a checkpointed block makes when it runs again.
func (t *Torch) track(x *Tensor) *Tensor {
	if t.second != nil {
		t.second.add(x)
	}
	return x
}

// emptyLike makes a tensor of the same layout: dense strides are kept, others
// become contiguous (empty_like, MemoryFormat::Preserve).
func (t *Torch) emptyLike(x *Tensor, dtype DType) *Tensor {
	if x.isDense() {
		return t.emptyStrided(dtype, x.Shape, x.stride)
	}
	return t.emptyStrided(dtype, x.Shape, preservedStrides(x))
}

// preservedStrides keeps the order of the dimensions of a tensor that is not
// dense (infer_dense_strides_dim_last and infer_dense_strides,
// ATen/MemoryOverlap and TensorIterator).
func preservedStrides(x *Tensor) []int64 {
	order := make([]int, len(x.Shape))
	for i := range order {
		order[i] = len(x.Shape) - 1 - i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if x.stride[a] == 0 || x.stride[b] == 0 || x.stride[a] == x.stride[b] {
			return 0
		}
		return int(x.stride[a] - x.stride[b])
	})
	stride := make([]int64, len(x.Shape))
	n := int64(1)
	for _, i := range order {
		stride[i] = n
		n *= max(x.Shape[i], 1)
	}
	return stride
}

// alias makes a view, outside the graph. It refers to the tensor that it is a
// view of, or that one's base, also where gradients are off
// (torch/csrc/autograd/variable.h, DifferentiableViewMeta).
func (t *Torch) alias(x *Tensor, shape, stride []int64) *Tensor {
	view := t.detach(x)
	view.Shape, view.stride = shape, stride
	if view.base = x.base; view.base == nil {
		view.base = x
	}
	t.retain(view.base)
	return view
}

// detach makes another TensorImpl on the same storage that is no view.
func (t *Torch) detach(x *Tensor) *Tensor {
	x.storage.refs++
	out := t.newTensor()
	*out = Tensor{Shape: x.Shape, stride: x.stride, DType: x.DType, refs: 1, storage: x.storage}
	return t.track(out)
}

// Detach is x.detach(): the same memory, outside the graph.
func (t *Torch) Detach(x X) Value {
	out := Value{t.detach(read(x))}
	t.done(x)
	return out
}

func (t *Torch) retain(x *Tensor) *Tensor {
	x.refs++
	return x
}

// release releases references.
func (t *Torch) release(tensors ...*Tensor) {
	for _, x := range tensors {
		t.releaseOne(x)
	}
}

// releaseOne releases a reference; the last one frees the tensor, and with it
// its references to the storage and the graph. Its callees recurse into it and
// not into release, whose variadic arguments would be allocated at every call.
func (t *Torch) releaseOne(x *Tensor) {
	if x == nil {
		return
	}
	x.refs--
	if x.refs > 0 {
		return
	}
	// The autograd metadata goes before the storage
	// (TensorImpl::release_resources).
	base, fn, grad := x.base, x.fn, x.grad
	x.base, x.fn, x.grad = nil, nil, nil
	t.releaseOne(base)
	t.releaseOne(grad)
	if fn != nil {
		t.releaseNode(fn)
	}
	t.drop(x.storage)
}
