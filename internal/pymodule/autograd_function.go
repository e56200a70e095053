package pymodule

import "memorymark/internal/torch"

// This file is torch.autograd.Function: classes whose forward and backward are Python.

// functionContext is the ctx of a call.
type functionContext struct {
	refs
	fields fields
	saved  []*tensor
}

func (c *functionContext) free(m *Machine) { m.dropAll(c.fields.values) }

func (c *functionContext) attribute(_ *Machine, name string) value {
	switch name {
	case "save_for_backward":
		return &builtin{name, func(_ *Machine, a *args) value {
			c.saved = tensorsAmong(a.pos)
			for _, x := range c.saved { // forward may have them alone
				hold(x)
			}
			return none{}
		}}
	case "mark_non_differentiable", "set_materialize_grads", "mark_dirty":
		return constantly(none{})
	case "saved_tensors":
		out := newTuple()
		for _, x := range c.saved {
			out.items = append(out.items, hold(x))
		}
		return out
	}
	v, _ := c.fields.get(name)
	return hold(v)
}

func (m *Machine) addAutogradFunction() {
	c := newClass("Function", m.types["object"])
	m.types["autograd.Function"] = c
	c.attrs["apply"] = &classMethod{&builtin{"apply", func(m *Machine, a *args) value {
		kind := a.pos[0].(*class)
		ctx := &functionContext{refs: refs{1}}
		inputs := make([]*torch.Tensor, len(a.pos)-1)
		for i, v := range a.pos[1:] {
			if x, ok := v.(*tensor); ok {
				inputs[i] = x.x
			}
		}
		var result value
		m.t.Custom(kind.name+"Backward", inputs, func() (outputs, saved, kept []*torch.Tensor) {
			result = m.invoke(kind.lookup("forward").(*staticMethod).f, &args{pos: append([]value{ctx}, a.pos[1:]...)})
			for _, x := range tensorsAmong(append([]value{result}, elementsOf(result)...)) {
				if x.x.DType.IsFloat() {
					outputs = append(outputs, x.x)
				}
			}
			for _, x := range ctx.saved {
				saved = append(saved, x.x)
			}
			for _, x := range tensorsAmong(ctx.fields.values) {
				kept = append(kept, x.x)
			}
			return outputs, saved, kept
		}, func(saved, grads []*torch.Tensor) []*torch.Tensor {
			return m.functionBackward(kind, ctx, saved, grads, len(inputs))
		})
		for i, v := range ctx.fields.values { // the node keeps them
			if x, ok := v.(*tensor); ok {
				ctx.fields.values[i] = &tensor{refs: refs{1}, x: x.x, fact: x.fact, borrowed: true}
				m.drop(x)
			}
		}
		for i, x := range ctx.saved {
			ctx.saved[i] = &tensor{refs: refs{1}, x: x.x, fact: x.fact, borrowed: true}
			m.drop(x)
		}
		return result
	}}}
}

// elementsOf are those of a tuple.
func elementsOf(v value) []value {
	if t, ok := v.(*tuple); ok {
		return t.items
	}
	return nil
}

// functionBackward calls backward with the gradients of the outputs, and returns one for
// each input.
func (m *Machine) functionBackward(kind *class, ctx *functionContext, saved, grads []*torch.Tensor, inputs int) []*torch.Tensor {
	for i, x := range saved {
		ctx.saved[i] = &tensor{refs: refs{1}, x: x, fact: ctx.saved[i].fact, borrowed: true}
	}
	given := []value{ctx}
	for _, g := range grads {
		if g == nil {
			given = append(given, none{})
		} else {
			given = append(given, &tensor{refs: refs{1}, x: g, borrowed: true})
		}
	}
	result := m.invoke(kind.lookup("backward").(*staticMethod).f, &args{pos: given})
	out := make([]*torch.Tensor, inputs)
	items := elementsOf(result)
	if items == nil {
		items = []value{result}
	}
	for i, v := range items {
		if x, ok := v.(*tensor); ok && i < len(out) {
			out[i] = m.t.Hold(in(x)).Tensor()
		}
	}
	m.drop(result)
	return out
}
