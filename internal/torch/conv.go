package torch

import "memorymark/internal/steptime"

// This file is torch.nn.functional.conv2d as cuDNN computes it
// (aten/src/ATen/native/Convolution.cpp, cudnn/ConvShared.cpp). cuDNN's
// workspaces are in cudnn_conv.go.

// Conv2d is nn.Conv2d with square kernels, without dilation, and without groups or
// with one for each channel.
type Conv2d struct {
	Weight, Bias    *Tensor
	Stride, Padding int64
	depthwise       bool
}

// NewConv2d makes a layer; its weight first.
func (t *Torch) NewConv2d(in, out, kernel, stride, padding int64, bias bool, dtype DType) *Conv2d {
	m := &Conv2d{Weight: t.parameter(dtype, out, in, kernel, kernel), Stride: stride, Padding: padding}
	if bias {
		m.Bias = t.bias(dtype, out)
	}
	return m
}

// NewDepthwiseConv2d makes a layer that has a kernel and a bias for each channel.
func (t *Torch) NewDepthwiseConv2d(channels, kernel, padding int64, dtype DType) *Conv2d {
	m := t.NewConv2d(1, channels, kernel, 1, padding, true, dtype)
	m.depthwise = true
	return m
}

// windowOut is the output size of a window that slides over a side of an image.
func windowOut(size, window, stride, padding int64) int64 { return (size+2*padding-window)/stride + 1 }

// Conv2d is conv2d, which is on autocast's lower list.
func (t *Torch) Conv2d(x X, m *Conv2d) Value {
	bias, weight := t.lower(m.Bias), t.lower(m.Weight)
	in := t.lower(read(x))
	out := t.convolution(in, &Conv2d{weight, bias, m.Stride, m.Padding, m.depthwise})
	t.release(in, weight, bias)
	t.done(x)
	return Value{out}
}

// inChannelsLast is cudnn_conv_suggest_memory_format (aten/src/ATen/native/ConvUtils.h):
// one of image and weight is enough.
func (m *Conv2d) inChannelsLast(in *Tensor) bool {
	return in.looksChannelsLast() || m.Weight.looksChannelsLast()
}

// convolution allocates the result, then the workspace; a bias is added in
// place. Operands in another memory order are copied.
func (t *Torch) convolution(in *Tensor, m *Conv2d) *Tensor {
	last := m.inChannelsLast(in)
	dense := t.contiguousImage(in, last)
	kernel := m.Weight.Shape[2]
	since := t.moment()
	out := t.emptyImage(in.DType, last, in.Shape[0], m.Weight.Shape[0],
		windowOut(in.Shape[2], kernel, m.Stride, m.Padding), windowOut(in.Shape[3], kernel, m.Stride, m.Padding))
	weight := t.contiguousImage(m.Weight, last)
	t.convWorkspace(in, m, convForward)
	t.noteConvolution(since, in.Shape, out.Shape, m.Weight.Shape, in.DType, last, steptime.Forward)
	t.release(weight, dense)
	if n := t.record("Convolution", in, m.Weight, m.Bias); n != nil {
		in, weight := t.save(n, in), t.save(n, m.Weight)
		kept := &Conv2d{weight, m.Bias, m.Stride, m.Padding, m.depthwise}
		n.backward = func(g []*Tensor) []*Tensor { return t.convolutionBackward(n, g[0], in, kept) }
		n.setOutputs(out)
	}
	return out
}

// convolutionBackward is convolution_backward: cuDNN takes the gradient in the
// order of the image for its two (ConvShared.cpp, cudnn_convolution_backward), the
// gradient of the bias is summed from the one that came in.
func (t *Torch) convolutionBackward(n *node, grad, in *Tensor, m *Conv2d) []*Tensor {
	out := t.lists.take(3)
	ordered := t.inOrderOf(grad, in)
	if n.wants(0) {
		last := m.inChannelsLast(ordered)
		since := t.moment()
		out[0] = t.emptyImage(in.DType, last, in.Shape...)
		weight, dense := t.contiguousImage(m.Weight, last), t.contiguousImage(ordered, last)
		t.convWorkspace(in, m, convInputGrad)
		t.noteConvolution(since, in.Shape, grad.Shape, m.Weight.Shape, in.DType, last, steptime.Backward)
		t.release(dense, weight)
	}
	if n.wants(1) {
		since, last := t.moment(), in.looksChannelsLast() || ordered.looksChannelsLast()
		dense, image := t.contiguousImage(ordered, last), t.contiguousImage(in, last)
		out[1] = t.emptyImage(m.Weight.DType, last, m.Weight.Shape...)
		t.convWorkspace(in, m, convWeightGrad)
		t.noteConvolution(since, in.Shape, grad.Shape, m.Weight.Shape, in.DType, last, steptime.FilterGrads)
		t.release(image, dense)
	}
	t.release(ordered)
	if m.Bias != nil && n.wants(2) {
		out[2] = t.sum(grad, []int{0, 2, 3}, false, grad.DType)
	}
	return out
}
