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
	form    cacheForm
}

// cacheForm is how a cache holds what a layer gives it.
type cacheForm int

// The forms. All but the first are of transformers 4.51, which keeps what a new
// layer is given as it is.
const (
	copied cacheForm = iota // behind what was there, which is nothing
	listed                  // in a list of keys and one of values
	paired                  // in a tuple of a tuple for each layer
)

type cachedLayer struct{ keys, values, window torch.Value }

// newDynamicCache is DynamicCache().
func newDynamicCache(v Versions) *dynamicCache {
	if v.Transformers.Before(4, 57) {
		return &dynamicCache{form: listed}
	}
	return &dynamicCache{}
}

// update is update: keys and values are copied behind what the layer holds,
// and the names then stand for the copies.
func (c *dynamicCache) update(t *torch.Torch, keys, values *torch.Var) {
	if c == nil {
		return
	}
	if c.form != copied {
		c.layers = append(c.layers, cachedLayer{keys: t.Hold(keys), values: t.Hold(values)})
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
	var out, last []torch.Value
	for _, l := range slices.Backward(c.layers) {
		switch c.form {
		case copied:
			out = append(out, l.keys, l.values, l.window)
		case listed:
			out, last = append(out, l.keys), append(last, l.values)
		case paired:
			out = append(out, l.values, l.keys)
		}
	}
	return append(out, last...)
}

// encoderDecoderCache is EncoderDecoderCache; that of an encoder is empty.
type encoderDecoderCache struct{ self, cross *dynamicCache }

func (c encoderDecoderCache) tensors() []torch.Value {
	if c.self == nil || c.self.form != paired {
		return slices.Concat(c.self.tensors(), c.cross.tensors())
	}
	var out []torch.Value // to_legacy_cache: a tuple of four for each layer
	for i, own := range slices.Backward(c.self.layers) {
		cross := c.cross.layers[i]
		out = append(out, cross.values, cross.keys, own.values, own.keys)
	}
	return out
}
