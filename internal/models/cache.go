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
}

type cachedLayer struct{ keys, values torch.Value }

// update is update: keys and values are copied behind what a new layer holds,
// which is nothing, and the names then stand for the copies.
func (c *dynamicCache) update(t *torch.Torch, keys, values *torch.Var) {
	if c == nil {
		return
	}
	l := cachedLayer{keys: t.Cat(-2, keys), values: t.Cat(-2, values)}
	c.layers = append(c.layers, l)
	keys.Set(l.keys.Borrow())
	values.Set(l.values.Borrow())
}

// tensors are those of the cache in the order in which they die: a Python list
// drops its last element first.
func (c *dynamicCache) tensors() []torch.Value {
	if c == nil {
		return nil
	}
	var out []torch.Value
	for _, l := range slices.Backward(c.layers) {
		out = append(out, l.keys, l.values)
	}
	return out
}
