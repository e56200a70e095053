package torch

// This file is torch.channels_last: images whose channels are next to each
// other in memory.

// channelsLastStrides are those of an image [n, c, h, w] in the order n, h, w, c
// (c10/core/MemoryFormat.h, get_channels_last_strides_2d).
func channelsLastStrides(shape []int64) []int64 {
	c, h, w := shape[1], shape[2], shape[3]
	return []int64{h * w * c, 1, w * c, c}
}

// looksChannelsLast is is_channels_last_strides_2d: it also tells tensors that
// could be either way by the strides of their dimensions of size 1.
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

// suggestedStrides are those of a result of a shape in the order that x has
// (Tensor::suggest_memory_format).
func (x *Tensor) suggestedStrides(shape []int64) []int64 {
	if x.looksChannelsLast() {
		return channelsLastStrides(shape)
	}
	return contiguousStrides(shape)
}
