package torch

import "memorymark/internal/trace"

// BuildOnHost builds a model on the CPU, where it takes no memory of the card,
// and returns what moves it there: model.to("cuda"). Each parameter and buffer
// gets memory of its own; one that two modules share has moved when its second
// module's turn comes (torch/nn/modules/module.py, _apply).
func (t *Torch) BuildOnHost(build func()) (toDevice func()) {
	host := t.onMeta(build)
	return func() {
		t.unlaunched = true // copies are no kernels
		t.As(trace.Parameter, func() {
			for _, s := range host.held {
				if s.id == trace.None {
					t.fill(s, host.bytes[s])
				}
			}
		})
	}
}

// OnHost makes a tensor on the CPU, which takes no memory of the card.
func (t *Torch) OnHost(dtype DType, shape ...int64) *Tensor {
	x := t.newTensor()
	own := t.copied(shape)
	*x = Tensor{Shape: own, stride: fillStrides(t.ints.take(len(own)), own), DType: dtype, refs: 1, storage: t.storages.next()}
	x.storage.id, x.storage.refs = trace.None, 1
	return t.noted(x)
}

// Launch says that a kernel runs, which is the first one of a model from the host.
func (t *Torch) Launch() {
	if t.unlaunched {
		t.unlaunched, t.trace.Launched = false, len(t.trace.Events)
	}
}

// EmptyCache is torch.cuda.empty_cache().
func (t *Torch) EmptyCache() {
	t.trace.Emptied = append(t.trace.Emptied, len(t.trace.Events))
}

// OwnAfterParts says that these are parameters or buffers of a module which has
// modules in it, all of them made by now: Module._apply comes to those first.
func (t *Torch) OwnAfterParts(own ...*Tensor) {
	if t.meta == nil {
		return
	}
	for _, p := range own {
		t.meta.gone(p.storage)
		t.meta.held = append(t.meta.held, p.storage)
	}
}

// CastParameter is module.to(dtype) of a parameter of another type: it has other
// memory then, and gives up what it had.
func (t *Torch) CastParameter(p *Tensor, dtype DType) {
	cast := t.emptyLike(p, dtype)
	if t.meta != nil {
		t.meta.put(cast.storage, p.storage, true)
	}
	p.DType = dtype
	p.storage, cast.storage = cast.storage, p.storage
	t.release(cast)
}

// CastBuffer is model.to(dtype) for a buffer: the module has the copy in its
// place.
func (t *Torch) CastBuffer(buffer Value, dtype DType) Value {
	old := buffer.tensor.storage
	out := t.To(buffer.Borrow(), dtype)
	if t.meta != nil && out.tensor.storage != old {
		t.meta.put(out.tensor.storage, old, true)
	}
	t.Drop(buffer)
	return out
}
