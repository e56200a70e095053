package models

import (
	"slices"

	"memorymark/internal/torch"
)

// dynamicCache is DynamicCache (transformers/cache_utils.py): the keys and
// values of every layer, which the model's output keeps. A nil cache keeps
// nothing.
type dynamicCache struct {
	layers []cachedLayer
	// sliding says which layers keep no more than a window; nil for none.
	sliding func(layer int64) bool
}

type cachedLayer struct{ keys, values, window torch.Value }

// update is update: keys and values are copied behind what the layer holds,
// and the names then stand for the copies.
func (c *dynamicCache) update(t *torch.Torch, keys, values *torch.Var) {
	if c == nil {
		return
	}
	var l cachedLayer
	if c.sliding != nil && c.sliding(int64(len(c.layers))) {
		l.window = t.Full(torch.Int64) // DynamicSlidingWindowLayer keeps its window on the device
	}
	// What a new layer holds is empty, both of it in the type of the keys.
	nothing := t.Full(keys.Tensor().DType, 0)
	l.keys = t.Cat(-2, nothing.Borrow(), keys)
	l.values = t.Cat(-2, nothing.Borrow(), values)
	t.Drop(nothing)
	c.layers = append(c.layers, l)
	keys.Set(l.keys.Borrow())
	values.Set(l.values.Borrow())
}

// tensors are those of the cache in the order in which they die: Python's lists and
// tuples drop their last element first.
func (c *dynamicCache) tensors() []torch.Value {
	if c == nil {
		return nil
	}
	var out []torch.Value
	for _, l := range slices.Backward(c.layers) {
		out = append(out, l.keys, l.values, l.window)
	}
	return out
}

// encoderDecoderCache is EncoderDecoderCache; that of an encoder is empty.
type encoderDecoderCache struct{ self, cross *dynamicCache }

func (c encoderDecoderCache) tensors() []torch.Value {
	return slices.Concat(c.self.tensors(), c.cross.tensors())
}
