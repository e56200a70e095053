package torch

import (
	"slices"

	"memorymark/internal/trace"
)

// metaDevice is torch.device("meta"): tensors with sizes and no memory. It
// records the model's tensors, so that to_empty can allocate them in order.
type metaDevice struct {
	// storages are those of parameters and buffers in the order in which
	// modules made them; a tied parameter is listed once for each module.
	storages []*storage
	bytes    map[*storage]int64
	t        *Torch
}

// onMeta runs f under torch.device("meta"), and returns the tensors it made.
func (t *Torch) onMeta(f func()) *metaDevice {
	d := &metaDevice{t: t, bytes: make(map[*storage]int64)}
	t.meta = d
	f()
	t.meta = nil
	return d
}

func (d *metaDevice) add(t *Torch, s *storage, bytes int64) {
	if t.category == trace.Parameter {
		d.storages = append(d.storages, s)
		d.bytes[s] = bytes
	}
}

func (d *metaDevice) remove(s *storage) {
	if indexIn(d.t, d.storages, s) < 0 {
		return
	}
	d.storages = slices.DeleteFunc(d.storages, func(h *storage) bool { return h == s })
}

// tie replaces a module's parameter by another's.
func (d *metaDevice) tie(own, other *storage) {
	if i := indexIn(d.t, d.storages, own); i >= 0 {
		d.storages[i] = other
	}
}

// insert lists a storage after another one, or instead of it.
func (d *metaDevice) insert(s, other *storage, replace bool) {
	d.remove(s)
	at := indexIn(d.t, d.storages, other)
	if replace {
		d.storages[at] = s
		return
	}
	d.storages = slices.Insert(d.storages, at+1, s)
}

// cast replaces a buffer by its copy in another type: Module.to(dtype).
func (d *metaDevice) cast(old, cast *storage) {
	if i := indexIn(d.t, d.storages, old); i >= 0 {
		d.remove(cast)
		d.storages = slices.Insert(d.storages, i, cast)
	}
}
