package torch

import "math"

// BatchNorm2d is nn.BatchNorm2d.
type BatchNorm2d struct {
	Weight, Bias      *Tensor
	Mean, Var, Counts *Tensor // running_mean, running_var, num_batches_tracked
}

// NewBatchNorm2d makes a layer.
func (t *Torch) NewBatchNorm2d(size int64, dtype DType) *BatchNorm2d {
	m := &BatchNorm2d{
		Weight: t.parameter(dtype, size), Bias: t.Parameter(dtype, size),
		Mean: t.Buffer(dtype, size), Var: t.Buffer(dtype, size), Counts: t.Buffer(Int64),
	}
	m.Weight.OddDecay() // the layer is no LayerNorm
	return m
}

// BatchNorm is torch.nn.functional.batch_norm of an image. The statistics of
// the batch come in the type of the weight from cuDNN, and in float32 from
// PyTorch's own kernel; cuDNN takes no workspace for images that are not
// channels-last, and in evaluation it leaves no statistics
// (aten/src/ATen/native/cudnn/BatchNorm.cpp, native/cuda/Normalization.cu).
func (t *Torch) BatchNorm(x X, m *BatchNorm2d, training bool) Value {
	in := t.contiguousInput(read(x))
	cudnn := batchNormByCuDNN(in, m)
	out := t.empty(in.DType, in.Shape...)
	channels, stats := in.Shape[1], Float32
	switch {
	case cudnn && training:
		stats = m.Weight.DType
	case cudnn:
		channels = 0
	}
	mean, deviation := t.empty(stats, channels), t.empty(stats, channels)
	if n := t.record("BatchNorm", in, m.Weight, m.Bias); n != nil {
		in := t.save(n, in)
		for _, x := range []*Tensor{m.Mean, m.Var, m.Weight} {
			t.save(n, x)
		}
		mean := t.save(n, mean)
		t.save(n, deviation)
		n.backward = func(g []*Tensor) []*Tensor { return t.batchNormBackward(n, g[0], in, mean, m, training) }
		n.made(out)
	}
	t.release(mean, deviation, in)
	t.done(x)
	return Value{out}
}

// batchNormByCuDNN is _select_batch_norm_backend
// (aten/src/ATen/native/Normalization.cpp).
func batchNormByCuDNN(in *Tensor, m *BatchNorm2d) bool {
	return in.DType != BFloat16 && m.Weight.DType != BFloat16 &&
		(in.DType != Float16 || m.Weight.DType == Float32) && in.Numel() < math.MaxInt32
}

// batchNormBackward makes the three gradients in one kernel, cuDNN's or
// PyTorch's. cuDNN has none for evaluation. PyTorch's takes images of one
// pixel for channels-last, and sums over the batch in a kernel of its own
// (batch_norm_backward_reduce_cuda).
func (t *Torch) batchNormBackward(n *node, grad, in, mean *Tensor, m *BatchNorm2d, training bool) []*Tensor {
	out := make([]*Tensor, 3)
	native := !training || !batchNormByCuDNN(in, m)
	if native && in.Shape[2]*in.Shape[3] == 1 {
		var deviation *Tensor
		if mean.Numel() == 0 { // cuDNN left none
			deviation = t.empty(Float32, in.Shape[1])
		}
		sum, product := t.empty(Float32, in.Shape[1]), t.empty(Float32, in.Shape[1])
		out[1] = t.empty(m.Weight.DType, m.Weight.Shape...)
		out[2] = t.empty(m.Weight.DType, m.Weight.Shape...)
		out[0] = t.empty(in.DType, in.Shape...)
		t.release(product, sum, deviation)
		return out
	}
	dense := t.contiguousInput(grad)
	if n.wants(0) {
		out[0] = t.empty(in.DType, in.Shape...)
	}
	out[1] = t.empty(m.Weight.DType, m.Weight.Shape...)
	out[2] = t.empty(m.Weight.DType, m.Weight.Shape...)
	t.release(dense)
	return out
}
