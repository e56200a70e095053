package torch

// This file is batch normalization of images in channels_last, which has kernels
// of its own: cuDNN's persistent ones, and PyTorch's for bfloat16.

// takesLastKernels is batch_norm_use_channels_last_kernels
// (aten/src/ATen/native/cuda/Normalization.cu): images of one pixel count as
// channels_last, too.
func (x *Tensor) takesLastKernels() bool {
	return x.isChannelsLast() || x.isContiguous() && x.stride[1] == 1
}

// batchNormBackwardLast sums over the batch in a kernel of its own, and computes
// the gradient of the image from the sums (batch_norm_backward_reduce_cuda,
// batch_norm_backward_elemt_channels_last_cuda_template). In evaluation that
// gradient is contiguous (batch_norm_elementwise_backward_eval).
func (t *Torch) batchNormBackwardLast(n *node, in, mean *Tensor, m *BatchNorm2d, training bool) []*Tensor {
	out := make([]*Tensor, 3)
	var deviation *Tensor
	if mean.Numel() == 0 { // cuDNN returned none
		deviation = t.empty(Float32, in.Shape[1])
	}
	sum, product := t.empty(Float32, in.Shape[1]), t.empty(Float32, in.Shape[1])
	out[1] = t.empty(m.Weight.DType, m.Weight.Shape...)
	out[2] = t.empty(m.Weight.DType, m.Weight.Shape...)
	t.partialSums(in, 2)
	if n.wants(0) {
		out[0] = t.emptyImage(in.DType, training && in.looksChannelsLast(), in.Shape...)
	}
	t.release(product, sum, deviation)
	return out
}

// partialSums is the scratch that a kernel's blocks share: some numbers for each
// channel, and a semaphore for each column of blocks
// (native/cuda/Normalization.cuh, flexible_launch_configs).
func (t *Torch) partialSums(in *Tensor, numbers int64) {
	const (
		maxBlock  = 512
		tile      = 32
		perThread = 16
		maxRows   = 128
		minRows   = 8
	)
	channels := in.Shape[1]
	pixels := in.Numel() / channels
	width := min(lastPowerOf2(channels), tile)
	height := min(lastPowerOf2(divUp(pixels, perThread)), maxBlock/width)
	if width*height != maxBlock {
		width = min(lastPowerOf2(channels), maxBlock/height)
	}
	rows := min(divUp(pixels, height*perThread), maxRows)
	if rows < minRows {
		return
	}
	staging := t.allocate(numbers * channels * rows * Float32.Size())
	semaphores := t.allocate(divUp(channels, width) * Int32.Size())
	t.drop(semaphores)
	t.drop(staging)
}

// persistentNorm is the workspace of cuDNN's persistent kernels, in which each
// block stores two sums for each channel of its tile. The formula reproduces
// every answer of cuDNN 9.19; the sizes of tiles and headers are observed.
func persistentNorm(in *Tensor, pixelsPerThread, header, flags int64) int64 {
	channels := in.Shape[1]
	tile, pixelsAtOnce := int64(64), int64(32)
	if channels%4 != 0 { // a thread loads one channel, not four
		tile, pixelsAtOnce = 4, 128
	}
	blocks := divUp(in.Numel()/channels, pixelsPerThread*pixelsAtOnce)
	sums := 2 * tile * Float32.Size()
	return header + divUp(channels, tile)*(Int32.Size()+blocks*(sums+flags))
}

func persistentNormForward(in *Tensor) int64 {
	pixels := int64(2)
	if in.DType.IsHalf() {
		pixels = 5
	}
	return persistentNorm(in, pixels, 1072, Int32.Size())
}

func persistentNormBackward(in *Tensor) int64 { return persistentNorm(in, 3, 1056, 0) }
