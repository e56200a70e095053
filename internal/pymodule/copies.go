package pymodule

import "memorymark/internal/torch"

// This file is copy.deepcopy of modules.

// copyModule copies a module that is on the CPU, with its parameters, its buffers and the
// modules in it. What two of them share, their copies share.
func (m *Machine) copyModule(x *instance, made map[any]value) value {
	if c := made[x]; c != nil {
		return hold(c)
	}
	m.countModule()
	old := stateOf(x)
	s := &moduleState{linear: clone(old.linear), embedding: clone(old.embedding), norm: clone(old.norm), conv: clone(old.conv), convolution: clone(old.convolution), initialized: old.initialized, evaluates: old.evaluates}
	c := &instance{refs: refs{1}, class: x.class, native: s}
	made[x] = c
	for i, name := range x.fields.names {
		c.fields.set(m, name, m.copyField(x.fields.values[i], made))
	}
	for _, part := range old.items {
		s.items = append(s.items, m.copyModule(part, made).(*instance))
	}
	for name, own := range s.parameters() {
		*own = c.own(name)
	}
	m.eachPart(c, func(name string, part *instance) { stateOf(part).join(c, name) })
	return c
}

func clone[T any](x *T) *T {
	if x == nil {
		return nil
	}
	c := *x
	return &c
}

// parameters are where package torch has the parameters of a layer.
func (s *moduleState) parameters() map[string]**torch.Tensor {
	switch {
	case s.linear != nil:
		return map[string]**torch.Tensor{"weight": &s.linear.Weight, "bias": &s.linear.Bias}
	case s.embedding != nil:
		return map[string]**torch.Tensor{"weight": &s.embedding.Weight}
	case s.norm != nil:
		return map[string]**torch.Tensor{"weight": &s.norm.Weight, "bias": &s.norm.Bias}
	case s.conv != nil:
		return map[string]**torch.Tensor{"weight": &s.conv.Weight, "bias": &s.conv.Bias}
	}
	return nil
}

func (m *Machine) copyField(v value, made map[any]value) value {
	switch x := v.(type) {
	case *tensor:
		if c := made[x.x]; c != nil {
			return hold(c)
		}
		c := m.copyTensor(x)
		made[x.x] = c
		return c
	case *instance:
		if x.isModule() {
			return m.copyModule(x, made)
		}
	case *list, *tuple, *dict:
		items, _ := itemsIn(v)
		for _, item := range items {
			if part, ok := item.(*instance); ok && part.isModule() {
				panic(failure("a copy of a list of modules is not known"))
			}
		}
	case *keptArgs, *function, *builtin, *class:
		return hold(v)
	}
	return m.copied(v)
}

func (m *Machine) copyTensor(x *tensor) value {
	if !x.host {
		panic(failure("a copy of a tensor on the card is not known"))
	}
	var c *tensor
	m.t.OnCPU(func() {
		if x.parameter {
			p := m.t.Parameter(x.x.DType, x.x.Shape...)
			c = &tensor{refs: refs{1}, x: m.t.Hold(torch.Borrow(p)).Tensor(), parameter: true, host: true}
			if !x.x.RequiresGrad() {
				p.Freeze()
			}
			return
		}
		c = &tensor{refs: refs{1}, x: m.t.OnHost(x.x.DType, x.x.Shape...), fact: x.fact, buffer: x.buffer, passing: x.passing, host: true}
	})
	return c
}
