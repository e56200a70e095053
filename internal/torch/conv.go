package torch

// This file is torch.nn.functional.conv2d as cuDNN computes it
// (aten/src/ATen/native/Convolution.cpp, cudnn/ConvShared.cpp). What cuDNN
// takes beside is in cudnn_conv.go.

// Conv2d is nn.Conv2d with square kernels, without groups or dilation.
type Conv2d struct {
	Weight, Bias    *Tensor
	Stride, Padding int64
}

// NewConv2d makes a layer; its weight first.
func (t *Torch) NewConv2d(in, out, kernel, stride, padding int64, bias bool, dtype DType) *Conv2d {
	m := &Conv2d{Weight: t.parameter(dtype, out, in, kernel, kernel), Stride: stride, Padding: padding}
	if bias {
		m.Bias = t.parameter(dtype, out)
	}
	return m
}

// slid is the size of an image's side after a window has slid over it.
func slid(size, window, stride, padding int64) int64 { return (size+2*padding-window)/stride + 1 }

// Conv2d is conv2d, which is on autocast's lower list.
func (t *Torch) Conv2d(x X, m *Conv2d) Value {
	bias, weight := t.lower(m.Bias), t.lower(m.Weight)
	in := t.lower(read(x))
	out := t.convolution(in, &Conv2d{weight, bias, m.Stride, m.Padding})
	t.release(in, weight, bias)
	t.done(x)
	return Value{out}
}

// convolution takes the result, then the workspace; a bias is added in place.
func (t *Torch) convolution(in *Tensor, m *Conv2d) *Tensor {
	dense := t.contiguousInput(in)
	kernel := m.Weight.Shape[2]
	out := t.empty(in.DType, in.Shape[0], m.Weight.Shape[0],
		slid(in.Shape[2], kernel, m.Stride, m.Padding), slid(in.Shape[3], kernel, m.Stride, m.Padding))
	operations := 2 * out.Numel() * product(m.Weight.Shape[1:])
	t.convolved(in.DType, operations)
	t.convWorkspace(in, m, convForward)
	t.release(dense)
	if n := t.record("Convolution", in, m.Weight, m.Bias); n != nil {
		in, weight := t.save(n, in), t.save(n, m.Weight)
		kept := &Conv2d{weight, m.Bias, m.Stride, m.Padding}
		n.backward = func(g []*Tensor) []*Tensor {
			for _, wanted := range []bool{n.wants(0), n.wants(1)} {
				if wanted {
					t.convolved(in.DType, operations)
				}
			}
			return t.convolutionBackward(n, g[0], in, kept)
		}
		n.made(out)
	}
	return out
}

// convolutionBackward is convolution_backward: cuDNN takes a dense gradient
// for its two, the gradient of the bias is summed from the one that came in.
func (t *Torch) convolutionBackward(n *node, grad, in *Tensor, m *Conv2d) []*Tensor {
	out := make([]*Tensor, 3)
	dense := t.contiguousInput(grad)
	if n.wants(0) {
		out[0] = t.empty(in.DType, in.Shape...)
		t.convWorkspace(in, m, convInputGrad)
	}
	if n.wants(1) {
		out[1] = t.empty(m.Weight.DType, m.Weight.Shape...)
		t.convWorkspace(in, m, convWeightGrad)
	}
	t.release(dense)
	if m.Bias != nil && n.wants(2) {
		out[2] = t.sum(grad, []int{0, 2, 3}, false, grad.DType)
	}
	return out
}
