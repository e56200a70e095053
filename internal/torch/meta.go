package torch

import (
	"slices"

	"memorymark/internal/trace"
)

// metaDevice is torch.device("meta"): tensors that have sizes and no memory.
// It keeps what the parts of the model have there, so that to_empty can give
// them memory, in their order.
type metaDevice struct {
	// held are the storages of parameters and buffers in the order in which
	// modules made them; a tied parameter is there once for each module.
	held  []*storage
	bytes map[*storage]int64
	t     *Torch
}

// onMeta runs f under torch.device("meta"), and returns what it made there.
func (t *Torch) onMeta(f func()) *metaDevice {
	d := &metaDevice{t: t, bytes: make(map[*storage]int64)}
	t.meta = d
	f()
	t.meta = nil
	return d
}

func (d *metaDevice) made(t *Torch, s *storage, bytes int64) {
	if t.category == trace.Parameter {
		d.held = append(d.held, s)
		d.bytes[s] = bytes
	}
}

func (d *metaDevice) gone(s *storage) {
	if indexIn(d.t, d.held, s) < 0 {
		return
	}
	d.held = slices.DeleteFunc(d.held, func(h *storage) bool { return h == s })
}

// tied says that a module has another's parameter in place of its own.
func (d *metaDevice) tied(own, other *storage) {
	if i := indexIn(d.t, d.held, own); i >= 0 {
		d.held[i] = other
	}
}

// put puts a storage behind another one, or in its place.
func (d *metaDevice) put(s, other *storage, replace bool) {
	d.gone(s)
	at := indexIn(d.t, d.held, other)
	if replace {
		d.held[at] = s
		return
	}
	d.held = slices.Insert(d.held, at+1, s)
}

// cast says that a buffer is there in another type, in the place of the old
// one: Module.to(dtype).
func (d *metaDevice) cast(old, cast *storage) {
	if i := indexIn(d.t, d.held, old); i >= 0 {
		d.gone(cast)
		d.held = slices.Insert(d.held, i, cast)
	}
}
