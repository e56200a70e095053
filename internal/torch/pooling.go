package torch

import "slices"

// This file is pooling (aten/src/ATen/native/cuda/AveragePool2d.cu, DilatedMaxPool2d.cu,
// AdaptiveAveragePooling.cu).

// Pool is what a window of pooling is, for each dimension.
type Pool struct {
	Kernel, Stride, Padding, Dilation []int64
	Ceil                              bool
}

// out is pooling_output_shape.
func (p *Pool) out(in []int64) []int64 {
	shape := slices.Clone(in)
	lead := len(in) - len(p.Kernel)
	for i, k := range p.Kernel {
		rest := in[lead+i] + 2*p.Padding[i] - p.Dilation[i]*(k-1) - 1
		if p.Ceil {
			rest += p.Stride[i] - 1
		}
		n := rest/p.Stride[i] + 1
		if p.Ceil && (n-1)*p.Stride[i] >= in[lead+i]+p.Padding[i] {
			n--
		}
		shape[lead+i] = n
	}
	return shape
}

// MaxPool is max_pool1d and max_pool2d: the result, then the indices, which are made
// whether a backward needs them or not.
func (t *Torch) MaxPool(x X, p *Pool) Value {
	in := read(x)
	last := in.looksChannelsLast()
	shape := p.out(in.Shape)
	out := t.emptyImage(in.DType, last, shape...)
	indices := t.emptyImage(Int64, last, shape...)
	if n := t.record("MaxPool2DWithIndices", in); n != nil {
		in := t.save(n, in)
		t.save(n, indices)
		n.gradient = func(g *Tensor) *Tensor {
			zeros := t.emptyImage(in.DType, last, in.Shape...)
			t.release(t.contiguousImage(g, last))
			return zeros
		}
		n.setOutputs(out)
	}
	t.release(indices)
	t.done(x)
	return Value{out}
}

// AvgPool is avg_pool1d, which is that of an image of one row, and avg_pool2d. Its input is
// saved.
func (t *Torch) AvgPool(x X, p *Pool) Value {
	in := read(x)
	last := in.looksChannelsLast()
	dense := t.contiguousImage(in, last)
	out := t.emptyImage(in.DType, last, p.out(in.Shape)...)
	t.release(dense)
	if n := t.record("AvgPool2D", in); n != nil {
		in := t.save(n, in)
		n.gradient = func(g *Tensor) *Tensor {
			out := t.emptyImage(g.DType, last, in.Shape...)
			t.release(t.contiguousImage(g, last))
			return out
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// AdaptiveAvgPool is adaptive_avg_pool2d to a size; to one pixel it is a mean.
func (t *Torch) AdaptiveAvgPool(x X, size ...int64) Value {
	in := read(x)
	if !slices.ContainsFunc(size, func(n int64) bool { return n != 1 }) && len(in.Shape) == 4 {
		return t.GlobalAvgPool2d(x)
	}
	shape := append(slices.Clone(in.Shape[:len(in.Shape)-len(size)]), size...)
	out := t.empty(in.DType, shape...)
	if n := t.record("AdaptiveAvgPool2D", in); n != nil {
		in := t.save(n, in)
		n.gradient = func(g *Tensor) *Tensor {
			dense := t.contiguousPlain(g)
			out := t.empty(in.DType, in.Shape...)
			t.release(dense)
			return out
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// Wide is the same of images of one row, where there is one dimension.
func (p *Pool) Wide() *Pool {
	if len(p.Kernel) > 1 {
		return p
	}
	one := func(list []int64, first int64) []int64 { return append([]int64{first}, list...) }
	return &Pool{one(p.Kernel, 1), one(p.Stride, 1), one(p.Padding, 0), one(p.Dilation, 1), p.Ceil}
}
