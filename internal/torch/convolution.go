package torch

import (
	"slices"

	"memorymark/internal/steptime"
)

// This file is a convolution of any kind: along one, two or three dimensions, with
// windows of any form, in groups, or transposed (aten/src/ATen/native/Convolution.cpp).

// Conv is what a convolution is computed with.
type Conv struct {
	Stride, Padding, Dilation []int64
	Output                    []int64 // output_padding of a transposed one
	Groups                    int64
	Transposed                bool
}

// Convolve is torch.nn.functional.conv1d and its kin, which are on autocast's lower list.
func (t *Torch) Convolve(x, w, b X, c *Conv) Value {
	var bias *Tensor
	if b != nil {
		bias = t.lower(read(b))
	}
	weight := t.lower(read(w))
	in := t.lower(read(x))
	out := t.convolve(in, weight, bias, c)
	t.release(in, weight, bias)
	t.done(x, w)
	if b != nil {
		t.done(b)
	}
	return Value{out}
}

// depthwise reports whether each channel has kernels of its own (is_depthwise).
func (c *Conv) depthwise(in, weight *Tensor) bool {
	return !c.Transposed && c.Groups > 1 && c.Groups == in.Shape[1] && weight.Shape[0]%in.Shape[1] == 0 && len(in.Shape) < 6
}

// plain is the convolution as those of package torch that have tables, nil if it is none:
// square windows without groups or dilation.
func (c *Conv) plain(in, weight, bias *Tensor) *Conv2d {
	square := len(in.Shape) == 4 && weight.Shape[2] == weight.Shape[3] && c.Stride[0] == c.Stride[1] && c.Padding[0] == c.Padding[1] &&
		c.Dilation[0] == 1 && c.Dilation[1] == 1 && in.Shape[2] == in.Shape[3] && !c.Transposed
	each := square && c.depthwise(in, weight)
	if !square || c.Groups != 1 && !each {
		return nil
	}
	return &Conv2d{weight, bias, c.Stride[0], c.Padding[0], each}
}

func (t *Torch) convolve(in, weight, bias *Tensor, c *Conv) *Tensor {
	if m := c.plain(in, weight, bias); m != nil {
		return t.convolution(in, m)
	}
	last := len(in.Shape) == 4 && !c.Transposed && (in.looksChannelsLast() || weight.looksChannelsLast())
	dense := t.contiguousImage(in, last)
	shape := c.outShape(in, weight)
	since := t.moment()
	out := t.emptyImage(in.DType, last, shape...)
	kernel := t.contiguousImage(weight, last)
	t.anyWorkspace(in, weight, c, convForward)
	t.noteConvolve(since, in, out, weight, c, last, steptime.Forward)
	t.release(kernel, dense)
	if n := t.record("Convolution", in, weight, bias); n != nil {
		in, weight := t.save(n, in), t.save(n, weight)
		n.backward = func(g []*Tensor) []*Tensor { return t.convolveBackward(n, g[0], in, weight, c) }
		n.setOutputs(out)
	}
	return out
}

// noteConvolve notes a convolution. A transposed one is the gradient of an image, and
// its gradient a convolution.
func (t *Torch) noteConvolve(since int, in, out, weight *Tensor, c *Conv, last bool, direction int) {
	if c.Transposed && direction != steptime.FilterGrads {
		direction = steptime.Backward - direction
	}
	if c.Transposed {
		in, out = out, in
	}
	t.noteConvolution(since, in.Shape, out.Shape, weight.Shape, in.DType, last, float64(direction))
}

// outShape is conv_output_size, or conv_input_size of a transposed one.
func (c *Conv) outShape(in, weight *Tensor) []int64 {
	shape := slices.Clone(in.Shape)
	shape[1] = weight.Shape[0]
	if c.Transposed {
		shape[1] = weight.Shape[1] * c.Groups
	}
	for i := range c.Stride {
		window := c.Dilation[i]*(weight.Shape[2+i]-1) + 1
		if c.Transposed {
			shape[2+i] = (in.Shape[2+i]-1)*c.Stride[i] - 2*c.Padding[i] + window + c.Output[i]
		} else {
			shape[2+i] = (in.Shape[2+i]+2*c.Padding[i]-window)/c.Stride[i] + 1
		}
	}
	return shape
}

func (t *Torch) convolveBackward(n *node, grad, in, weight *Tensor, c *Conv) []*Tensor {
	out := t.lists.take(3)
	line := t.lineOf(in)
	ordered := t.contiguousPlain(grad)
	if len(in.Shape) == 4 && !c.Transposed {
		t.release(ordered)
		ordered = t.inOrderOf(grad, in)
	}
	last := len(in.Shape) == 4 && !c.Transposed && (in.looksChannelsLast() || weight.looksChannelsLast())
	operands, each := []*Tensor{in, weight}, c.depthwise(in, weight)
	for i := range operands {
		if each { // the gradient of the weight comes first (cuda/DepthwiseConv2d.cu)
			i = 1 - i
		}
		if of := operands[i]; n.wants(i) {
			since := t.moment()
			dense := t.contiguousImage(ordered, last)
			out[i] = t.emptyImage(of.DType, last, of.Shape...)
			t.anyWorkspace(in, weight, c, []convDirection{convInputGrad, convWeightGrad}[i])
			t.noteConvolve(since, in, grad, weight, c, last, steptime.Backward+i)
			t.release(dense)
		}
	}
	t.release(ordered)
	if n.wants(2) {
		dims := []int{0}
		for i := 2; i < len(grad.Shape); i++ {
			dims = append(dims, i)
		}
		out[2] = t.sum(grad, dims, false, grad.DType)
	}
	t.release(line)
	return out
}

// lineOf is what convolution_backward makes of its input along one dimension: a contiguous
// one, whether it is needed or not. Other inputs it takes as they are.
func (t *Torch) lineOf(in *Tensor) *Tensor {
	if len(in.Shape) == 3 {
		return t.contiguousPlain(in)
	}
	return t.retain(in)
}

// anyWorkspace is cuDNN's workspace of a convolution along one dimension that is in a table.
// Depthwise ones use PyTorch's own kernels (use_cudnn_depthwise), and kernels of one pixel and of
// groups were seen to need none. What others need is not known, and may be most of a step's memory.
func (t *Torch) anyWorkspace(in, weight *Tensor, c *Conv, d convDirection) {
	window := weight.Shape[2:]
	switch {
	case c.depthwise(in, weight):
		return
	case c.Transposed, len(window) > 2, slices.Max(c.Dilation) > 1, len(window) == 2 && window[0] != window[1]:
		t.unknownWorkspace("transposed %t, window %d, dilation %d", c.Transposed, window, c.Dilation)
	case len(window) == 2 || c.Groups != 1:
		return
	}
	m := &Conv1d{Weight: weight, Stride: c.Stride[0], Padding: c.Padding[0]}
	t.workspaceOf(in, m.shape(in), "", d)
}
