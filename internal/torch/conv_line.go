package torch

// This file is torch.nn.functional.conv1d, which cuDNN computes as a convolution
// of images of one row (aten/src/ATen/native/Convolution.cpp, view4d).

// Conv1d is nn.Conv1d with a bias, without groups or dilation.
type Conv1d struct {
	Weight, Bias    *Tensor
	Stride, Padding int64
	input           bool // the model's input embedding
}

// NewConv1d makes a layer; its weight first.
func (t *Torch) NewConv1d(in, out, kernel, stride, padding int64, dtype DType) *Conv1d {
	return &Conv1d{Weight: t.parameter(dtype, out, in, kernel), Bias: t.bias(dtype, out), Stride: stride, Padding: padding}
}

// AsInput says that the layer is the model's input embedding
// (get_input_embeddings).
func (m *Conv1d) AsInput() *Conv1d {
	m.input = true
	return m
}

// Conv1d is conv1d, which is on autocast's lower list.
func (t *Torch) Conv1d(x X, m *Conv1d) Value {
	bias, weight := t.lower(m.Bias), t.lower(m.Weight)
	in := t.lower(read(x))
	out := t.convolutionLine(in, &Conv1d{Weight: weight, Bias: bias, Stride: m.Stride, Padding: m.Padding})
	t.release(in, weight, bias)
	if m.input && t.InputsRequireGrad {
		out.requiresGrad = true // output.requires_grad_(True), of a forward hook
	}
	t.done(x)
	return Value{out}
}

// shape is the convolution as tables have it.
func (m *Conv1d) shape(in *Tensor) convShape {
	return convShape{
		c: in.Shape[1], h: in.Shape[2], k: m.Weight.Shape[0], r: m.Weight.Shape[2], stride: m.Stride, pad: m.Padding, line: true,
	}
}

// convolutionLine is convolution of lines.
func (t *Torch) convolutionLine(in *Tensor, m *Conv1d) *Tensor {
	dense, s := t.contiguousInput(in), m.shape(in)
	out := t.empty(in.DType, in.Shape[0], s.k, s.out())
	operations := 2 * out.Numel() * product(m.Weight.Shape[1:])
	t.convolved(in.DType, operations)
	t.workspaceOf(in, s, "", convForward)
	t.release(dense)
	if n := t.record("Convolution", in, m.Weight, m.Bias); n != nil {
		in, weight := t.save(n, in), t.save(n, m.Weight)
		n.backward = func(g []*Tensor) []*Tensor { return t.convolutionLineBackward(n, g[0], in, weight, s, operations) }
		n.made(out)
	}
	return out
}

// convolutionLineBackward is convolutionBackward of lines.
func (t *Torch) convolutionLineBackward(n *node, grad, in, weight *Tensor, s convShape, operations int64) []*Tensor {
	out := make([]*Tensor, 3)
	dense := t.contiguousInput(grad)
	for i, of := range []*Tensor{in, weight} {
		if n.wants(i) {
			t.convolved(in.DType, operations)
			out[i] = t.empty(of.DType, of.Shape...)
			t.workspaceOf(in, s, "", []convDirection{convInputGrad, convWeightGrad}[i])
		}
	}
	t.release(dense)
	if n.wants(2) {
		out[2] = t.sum(grad, []int{0, 2}, false, grad.DType)
	}
	return out
}
