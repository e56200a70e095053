package torch

import "memorymark/internal/trace"

// BuildOnHost builds a model on the CPU, where it uses no memory of the card,
// and returns a function that moves it there: model.to("cuda"). Each parameter
// and buffer gets its own memory; one that two modules share moves only once
// (torch/nn/modules/module.py, _apply).
func (t *Torch) BuildOnHost(build func()) (toDevice func()) {
	host := t.onMeta(build)
	return func() {
		t.As(trace.Parameter, func() {
			for _, s := range host.storages {
				if s.id == trace.None {
					t.fill(s, host.bytes[s])
				}
			}
		})
	}
}

// OnHost makes a tensor on the CPU, which uses no memory of the card.
func (t *Torch) OnHost(dtype DType, shape ...int64) *Tensor {
	x := t.newTensor()
	own := t.cloneInts(shape)
	*x = Tensor{Shape: own, stride: fillStrides(t.ints.take(len(own)), own), DType: dtype, refs: 1, storage: t.storages.next()}
	x.storage.id, x.storage.refs = trace.None, 1
	return t.track(x)
}

// ToCard gives a tensor of the CPU memory of the card.
func (t *Torch) ToCard(x *Tensor) {
	if t.meta != nil {
		t.meta.add(t, x.storage, x.bytes())
		return
	}
	t.fill(x.storage, x.bytes())
}

// OnCPU runs operators on tensors of the CPU, whose results use no memory of the card.
func (t *Torch) OnCPU(f func()) {
	old := t.onCPU
	t.onCPU = true
	f()
	t.onCPU = old
}

// IsOnCPU reports whether operators run there.
func (t *Torch) IsOnCPU() bool { return t.onCPU }

// Launch marks that a kernel runs. Copies are none, and the kernels that draw random
// numbers are not the ones for which the driver takes memory (internal/emulate/library/memory.c).
func (t *Torch) Launch() {
	if t.trace.Launched == 0 && t.meta == nil && !t.onCPU {
		t.trace.Launched = len(t.trace.Events)
	}
}

// EmptyCache is torch.cuda.empty_cache().
func (t *Torch) EmptyCache() {
	t.trace.Emptied = append(t.trace.Emptied, len(t.trace.Events))
}

// OwnAfterParts marks parameters or buffers of a module with submodules that
// all exist by now: Module._apply visits those first.
func (t *Torch) OwnAfterParts(own ...*Tensor) {
	if t.meta == nil {
		return
	}
	for _, p := range own {
		t.meta.remove(p.storage)
		t.meta.storages = append(t.meta.storages, p.storage)
	}
}

// ListOnHost lists the parameters and buffers of a model that is not on the card yet as
// Module._apply visits them.
func (t *Torch) ListOnHost(all []*Tensor) {
	if t.meta == nil {
		return
	}
	t.meta.storages = t.meta.storages[:0]
	for _, x := range all {
		t.meta.storages = append(t.meta.storages, x.storage)
	}
}

// CastParameter is module.to(dtype) of a parameter of another type: it gets new
// memory, and the old is freed.
func (t *Torch) CastParameter(p *Tensor, dtype DType) {
	cast := t.emptyLike(p, dtype)
	if t.meta != nil {
		t.meta.insert(cast.storage, p.storage, true)
	} else {
		t.Launch()
	}
	p.DType = dtype
	p.storage, cast.storage = cast.storage, p.storage
	t.release(cast)
}

// CastBuffer is model.to(dtype) for a buffer: the copy replaces it in the
// module.
func (t *Torch) CastBuffer(buffer Value, dtype DType) Value {
	old := buffer.tensor.storage
	out := t.To(buffer.Borrow(), dtype)
	if t.meta != nil && out.tensor.storage != old {
		t.meta.insert(out.tensor.storage, old, true)
	}
	t.Drop(buffer)
	return out
}
