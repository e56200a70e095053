package pymodule

import (
	"slices"

	"memorymark/internal/torch"
)

// This file is torch.utils.checkpoint around layers of a model
// (GradientCheckpointingLayer, which is evaluated, calls it).

// enableCheckpointing is gradient_checkpointing_enable().
func (m *Machine) enableCheckpointing(model *instance) {
	m.walk(model, false, func(x *instance) {
		if _, ok := m.optional(x, "gradient_checkpointing"); ok {
			x.fields.set(m, "gradient_checkpointing", true)
			x.fields.set(m, "_gradient_checkpointing_func", &builtin{"checkpoint", checkpoint})
		}
	})
}

// checkpoint is checkpoint(partial(function, **keywords), *args), or that of a function. The tensors among the
// keywords are kept by the partial, which goes first, the others by autograd.
func checkpoint(m *Machine, a *args) value {
	call, ok := a.pos[0].(*partial)
	if !ok {
		call = &partial{f: a.pos[0], kept: newDict()}
	}
	var inputs []torch.X
	named := make([]func(in []*torch.Var) value, len(call.kept.values))
	for i, v := range call.kept.values {
		named[i] = asInput(v, &inputs)
	}
	pos := make([]func(in []*torch.Var) value, len(a.pos)-1)
	for i, v := range a.pos[1:] {
		if _, ok := v.(*tensor); ok {
			pos[i] = asInput(v, &inputs)
		}
	}
	for i, v := range slices.Backward(a.pos[1:]) { // of a tuple, which goes behind them
		if pos[i] == nil {
			pos[i] = asInput(v, &inputs)
		}
	}
	f, path, first := hold(call.f), m.path, true
	names := make([]string, len(named))
	for i, k := range call.kept.keys {
		names[i] = k.(string)
	}
	var result value
	m.t.CheckpointInputs(func(in []*torch.Var) torch.Value {
		given := args{names: names}
		for _, make := range pos {
			given.pos = append(given.pos, make(in))
		}
		for _, make := range named {
			given.named = append(given.named, make(in))
		}
		out := m.within(path, func() value { return m.callOwned(f, given) })
		if first {
			first, result = false, out
		} else {
			m.drop(out)
		}
		return torch.Value{}
	}, inputs...)
	return result
}

// asInput notes the tensors of an argument, in the order in which they go, and
// returns what makes the argument of those that a run is given.
func asInput(v value, inputs *[]torch.X) func(in []*torch.Var) value {
	switch x := v.(type) {
	case *tensor:
		i := len(*inputs)
		*inputs = append(*inputs, in(x))
		return func(in []*torch.Var) value {
			return &tensor{refs: refs{1}, x: in[i].Tensor(), fact: x.fact, borrowed: true}
		}
	case *tuple:
		parts := make([]func(in []*torch.Var) value, len(x.items))
		for i, item := range slices.Backward(x.items) {
			parts[i] = asInput(item, inputs)
		}
		return func(in []*torch.Var) value {
			out := newTuple()
			for _, part := range parts {
				out.items = append(out.items, part(in))
			}
			return out
		}
	}
	hold(v)
	return func([]*torch.Var) value { return hold(v) }
}

// within runs something as a module does, and leaves the process as it was if it is
// stopped: the names of functions that ran are kept for those who let them go.
func (m *Machine) within(path string, run func() value) value {
	frame, top, depth, outer := m.frame, m.top, m.depth, m.path
	m.path = path
	defer func() {
		r := recover()
		if r != nil {
			m.locate(r)
			for f := m.frame; f != frame; f = f.back {
				f.locals = slices.Clone(f.locals)
			}
			clear(m.stack[top:max(m.top, top)])
			m.frame, m.top, m.depth = frame, top, depth
		}
		m.path = outer
		if r != nil {
			panic(r)
		}
	}()
	return run()
}

// tensors are those that the names of a function refer to.
func (f *frame) tensors() []*torch.Tensor { return tensorsIn(f.locals) }

// tensorsIn are those in objects that have nothing else, in the order in which they
// go; of several references the last one counts.
func tensorsIn(list []value) []*torch.Tensor {
	var out []*torch.Tensor
	var visit func(v value)
	visit = func(v value) {
		switch x := v.(type) {
		case *tensor:
			out = append(slices.DeleteFunc(out, func(y *torch.Tensor) bool { return y == x.x }), x.x)
		case *tuple:
			for _, item := range slices.Backward(x.items) {
				visit(item)
			}
		case *dict:
			for _, item := range x.values {
				visit(item)
			}
		case *cell:
			visit(x.value)
		}
	}
	for _, v := range list {
		visit(v)
	}
	return out
}
