package torch

import "memorymark/internal/trace"

// This file is torch.channels_last: images whose channels are next to each
// other in memory.

// channelsLastStrides are those of an image [n, c, h, w] in the order n, h, w, c
// (c10/core/MemoryFormat.h, get_channels_last_strides_2d).
func channelsLastStrides(shape []int64) []int64 {
	c, h, w := shape[1], shape[2], shape[3]
	return []int64{h * w * c, 1, w * c, c}
}

// looksChannelsLast is is_channels_last_strides_2d: for tensors that could be
// either way it looks at the strides of their dimensions of size 1.
func (x *Tensor) looksChannelsLast() bool {
	if len(x.Shape) != 4 || x.stride[1] == 0 {
		return false
	}
	least := int64(0)
	for _, d := range []int{1, 3, 2, 0} {
		switch {
		case x.Shape[d] == 0, x.stride[d] < least, d == 0 && least == x.stride[1]:
			return false
		}
		least = x.stride[d]
		if x.Shape[d] > 1 {
			least *= x.Shape[d]
		}
	}
	return true
}

// suggestedStrides returns the strides of a result with this shape in the
// memory order of x (Tensor::suggest_memory_format).
func (x *Tensor) suggestedStrides(shape []int64) []int64 {
	if x.looksChannelsLast() {
		return channelsLastStrides(shape)
	}
	return contiguousStrides(shape)
}

// isChannelsLast is is_contiguous(torch.channels_last): the strides of dimensions
// of size 1 do not matter.
func (x *Tensor) isChannelsLast() bool {
	if len(x.Shape) != 4 {
		return false
	}
	n := int64(1)
	for _, d := range []int{1, 3, 2, 0} {
		if x.Shape[d] != 1 {
			if x.stride[d] != n {
				return false
			}
			n *= x.Shape[d]
		}
	}
	return true
}

// emptyImage makes an image in one of the two orders.
func (t *Torch) emptyImage(dtype DType, last bool, shape ...int64) *Tensor {
	if last {
		return t.emptyStrided(dtype, shape, channelsLastStrides(shape))
	}
	return t.empty(dtype, shape...)
}

// Images makes the images of a batch.
func (t *Torch) Images(dtype DType, last bool, shape ...int64) *Tensor {
	var x *Tensor
	t.As(trace.Input, func() { x = t.emptyImage(dtype, last, shape...) })
	return x
}

// contiguousImage is x.contiguous(memory_format) within an operator; the caller
// owns a reference.
func (t *Torch) contiguousImage(x *Tensor, last bool) *Tensor {
	switch {
	case !last:
		return t.contiguousPlain(x)
	case x.isChannelsLast():
		return t.retain(x)
	default:
		return t.emptyImage(x.DType, true, x.Shape...)
	}
}

// inOrderOf is x.to(like.suggest_memory_format()); the caller owns a reference.
func (t *Torch) inOrderOf(x, like *Tensor) *Tensor {
	if last := like.looksChannelsLast(); last != x.looksChannelsLast() {
		return t.emptyImage(x.DType, last, x.Shape...)
	}
	return t.retain(x)
}

// ToChannelsLast is model.to(memory_format=torch.channels_last): weights of four
// dimensions are copied one after the other (torch/nn/modules/module.py, to and
// _apply). On the CPU that uses no memory of the card.
func (t *Torch) ToChannelsLast() {
	for _, p := range t.parameters {
		if len(p.Shape) != 4 || p.looksChannelsLast() {
			continue
		}
		p.stride = channelsLastStrides(p.Shape)
		if t.meta != nil {
			continue
		}
		old := p.storage
		t.As(trace.Parameter, func() { p.storage = t.allocate(p.bytes()) })
		t.drop(old)
	}
}
