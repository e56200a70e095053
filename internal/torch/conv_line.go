package torch

import "memorymark/internal/steptime"

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
	out := t.convolution1d(in, &Conv1d{Weight: weight, Bias: bias, Stride: m.Stride, Padding: m.Padding})
	t.release(in, weight, bias)
	if m.input && t.InputsRequireGrad {
		out.requiresGrad = true // output.requires_grad_(True), of a forward hook
	}
	t.done(x)
	return Value{out}
}

// shape is the convolution as a key of the tables.
func (m *Conv1d) shape(in *Tensor) convShape {
	return convShape{
		c: in.Shape[1], h: in.Shape[2], k: m.Weight.Shape[0], r: m.Weight.Shape[2], stride: m.Stride, pad: m.Padding, oneD: true,
	}
}

// convolution1d is convolution along one dimension.
func (t *Torch) convolution1d(in *Tensor, m *Conv1d) *Tensor {
	dense, s := t.contiguousInput(in), m.shape(in)
	since := t.moment()
	out := t.empty(in.DType, in.Shape[0], s.k, s.out())
	t.workspaceOf(in, s, "", convForward)
	t.noteConvolution(since, in.Shape, out.Shape, m.Weight.Shape, in.DType, false, steptime.Forward)
	t.release(dense)
	if n := t.record("Convolution", in, m.Weight, m.Bias); n != nil {
		in, weight := t.save(n, in), t.save(n, m.Weight)
		n.backward = func(g []*Tensor) []*Tensor { return t.convolution1dBackward(n, g[0], in, weight, s) }
		n.setOutputs(out)
	}
	return out
}

// convolution1dBackward is convolutionBackward along one dimension.
func (t *Torch) convolution1dBackward(n *node, grad, in, weight *Tensor, s convShape) []*Tensor {
	out := make([]*Tensor, 3)
	dense := t.contiguousInput(grad)
	for i, of := range []*Tensor{in, weight} {
		if n.wants(i) {
			since := t.moment()
			out[i] = t.empty(of.DType, of.Shape...)
			t.workspaceOf(in, s, "", []convDirection{convInputGrad, convWeightGrad}[i])
			t.noteConvolution(since, in.Shape, grad.Shape, weight.Shape, in.DType, false, float64(steptime.Backward+i))
		}
	}
	t.release(dense)
	if n.wants(2) {
		out[2] = t.sum(grad, []int{0, 2}, false, grad.DType)
	}
	return out
}
