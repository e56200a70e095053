package torch

import (
	"math"

	"memorymark/internal/steptime"
)

// BatchNorm2d is nn.BatchNorm2d.
type BatchNorm2d struct {
	Weight, Bias      *Tensor
	Mean, Var, Counts *Tensor // running_mean, running_var, num_batches_tracked
}

// NewBatchNorm2d makes a layer.
func (t *Torch) NewBatchNorm2d(size int64, dtype DType) *BatchNorm2d {
	m := &BatchNorm2d{
		Weight: t.filled(dtype, size), Bias: t.bias(dtype, size),
		Mean: t.Buffer(dtype, size), Var: t.Buffer(dtype, size), Counts: t.Buffer(Int64),
	}
	m.Weight.OddDecay() // the layer is no LayerNorm
	return m
}

// BatchNorm is torch.nn.functional.batch_norm of an image. The statistics of
// the batch come in the type of the weight from cuDNN, and in float32 from
// PyTorch's own kernel; in evaluation cuDNN leaves none
// (aten/src/ATen/native/cudnn/BatchNorm.cpp, native/cuda/Normalization.cu).
func (t *Torch) BatchNorm(x X, m *BatchNorm2d, training bool) Value {
	given := read(x)
	last := given.looksChannelsLast()
	in := t.contiguousImage(given, last)
	cudnn, since := batchNormByCuDNN(in, m), t.moment()
	out := t.emptyImage(in.DType, last, in.Shape...)
	channels, stats := in.Shape[1], Float32
	switch {
	case cudnn && training:
		stats = m.Weight.DType
	case cudnn:
		channels = 0
	}
	mean, deviation := t.empty(stats, channels), t.empty(stats, channels)
	switch {
	case cudnn && training && last:
		t.passingWorkspace(persistentNormForward(in))
	case !cudnn && training && in.takesLastKernels():
		t.partialSums(in, 4)
	}
	t.noteBatchNorm(since, steptime.Forward, in, cudnn, training)
	if n := t.record("BatchNorm", given, m.Weight, m.Bias); n != nil {
		in := t.save(n, given)
		for _, x := range []*Tensor{m.Mean, m.Var, m.Weight} {
			t.save(n, x)
		}
		mean := t.save(n, mean)
		t.save(n, deviation)
		n.backward = func(g []*Tensor) []*Tensor { return t.batchNormBackward(n, g[0], in, mean, m, training) }
		n.setOutputs(out)
	}
	t.release(mean, deviation, in)
	t.done(x)
	return Value{out}
}

// batchNormByCuDNN is _select_batch_norm_backend, which leaves vectors to PyTorch's own
// kernel (aten/src/ATen/native/Normalization.cpp).
func batchNormByCuDNN(in *Tensor, m *BatchNorm2d) bool {
	if m.Weight == nil || len(in.Shape) < 3 {
		return false
	}
	return in.DType != BFloat16 && m.Weight.DType != BFloat16 &&
		(in.DType != Float16 || m.Weight.DType == Float32) && in.Numel() < math.MaxInt32
}

// noteBatchNorm notes a normalization of a batch in place of what was launched since a
// moment. In evaluation it is a kernel like others.
func (t *Torch) noteBatchNorm(since int, direction float64, in *Tensor, cudnn, training bool) {
	if !training {
		t.noteFused(since, steptime.Kernel, in.DType, (2+direction)*float64(in.bytes()))
		return
	}
	library := 0.
	if cudnn {
		library = 1
	}
	t.noteFused(since, steptime.BatchNorm, in.DType, direction, library, float64(in.Numel()), float64(in.Shape[1]))
}

// batchNormBackward makes the three gradients in one kernel, cuDNN's or
// PyTorch's. cuDNN has none for evaluation.
func (t *Torch) batchNormBackward(n *node, grad, in, mean *Tensor, m *BatchNorm2d, training bool) []*Tensor {
	native := !training || !batchNormByCuDNN(in, m)
	since := t.moment()
	defer func() { t.noteBatchNorm(since, steptime.Backward, in, !native, training) }()
	if native && in.takesLastKernels() {
		return t.batchNormBackwardLast(n, in, mean, m, training)
	}
	out, last := t.lists.take(3), in.looksChannelsLast()
	dense := t.contiguousImage(grad, last)
	if n.wants(0) {
		out[0] = t.emptyImage(in.DType, last, in.Shape...)
	}
	if m.Weight != nil {
		out[1] = t.empty(m.Weight.DType, m.Weight.Shape...)
		out[2] = t.empty(m.Weight.DType, m.Weight.Shape...)
	}
	if last {
		t.passingWorkspace(persistentNormBackward(in))
	}
	t.release(dense)
	return out
}
