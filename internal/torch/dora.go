package torch

import "memorymark/internal/trace"

// This file is DoRA, by which an adapter also trains the magnitude of each row
// of a weight (peft/tuners/lora/dora.py).

// initMagnitude makes the magnitudes of a layer: the norms of the rows of its
// weight with the adapter's product (DoraLinearLayer.update_layer). Their graph
// keeps the sum until the function ends. If the model is built on the CPU, so is
// all of this: nothing is allocated on the device, not even cuBLAS's workspace.
func (t *Torch) initMagnitude(m *Linear) {
	if t.meta != nil {
		m.lora.magnitude = t.parameterAfter(m.lora.b.Weight, promote(m.Weight.DType, m.lora.b.Weight.DType), m.lora.b.Weight.Shape[0])
		m.lora.magnitude.OddDecay() // lora_magnitude_vector is not named like a norm
		return
	}
	f := t.Enter()
	product := f.Let(t.MatMul(Borrow(m.lora.b.Weight), Borrow(m.lora.a.Weight)))
	norm := f.Let(t.weightNorm(m, f.Let(Borrow(m.Weight)), product))
	p := t.detach(norm.tensor)
	p.requiresGrad, p.unread, p.oddDecay = true, true, true
	t.trace.Events[p.storage.event].For = trace.Parameter
	t.listAfter(p, m.lora.b.Weight)
	m.lora.magnitude = p
	f.End()
}

// weightNorm is get_weight_norm.
func (t *Torch) weightNorm(m *Linear, weight, product X) Value {
	f := t.Enter(product)
	w := f.Let(Borrow(read(weight)))
	if m.conv1D {
		w.Set(t.transposeWeight(w.tensor, m))
	}
	w.Set(t.Add(w, t.Scale(Borrow(read(product)))))
	norm := f.Let(t.To(t.rowNorms(w), w.tensor.DType))
	return f.Return(norm)
}

// rowNorms is torch.linalg.norm(x, dim=1). It has no backward here, but the graph
// keeps x and the norms all the same. Under autocast it returns float32, and its
// input is not cast (aten/src/ATen/autocast_mode.h, AT_FORALL_FP32_SET_OPT_DTYPE).
func (t *Torch) rowNorms(x X) Value {
	in := read(x)
	dtype := in.DType
	if t.castType() != NoDType && dtype.IsHalf() {
		dtype = Float32
	}
	out := t.sum(in, []int{1}, false, dtype)
	if n := t.record("LinalgVectorNorm", in); n != nil {
		t.save(n, in)
		t.save(n, out)
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// withMagnitude is DoraLinearVariant.forward, which ends lora.Linear's.
func (t *Torch) withMagnitude(x, result *Var, m *Linear) Value {
	f := t.Enter()
	return f.Return(t.addScaledRows(f, f.Let(x), result, m))
}

// addScaledRows is lora.Linear.forward of PEFT 0.15, which does this itself, with its
// own names for the scaled rows.
func (t *Torch) addScaledRows(f *Frame, in, result *Var, m *Linear) Value {
	l, base := m.lora, f.Let(Value{})
	if l.dropout == 0 || !l.train {
		base.Set(result)
	} else {
		in.Set(t.Dropout(in, l.dropout, l.train))
	}
	return t.Add(result, t.scaledRows(in, base, m))
}

// scaledRows is DoraLinearLayer.forward.
func (t *Torch) scaledRows(x, base *Var, m *Linear) Value {
	f, l := t.Enter(), m.lora
	in, result := f.Let(x), f.Let(base)
	eye, product := f.Let(Value{}), f.Let(Value{})
	if l.peft.Before(0, 21) { // as in recordings of 0.15 and 0.18: x_eye is a name of this function
		eye.Set(t.identity(in.tensor.DType, l))
		product.Set(t.loraOf(eye, l))
	} else {
		product.Set(t.loraWeight(l))
		product.Set(t.To(product, in.tensor.DType))
	}
	weight := f.Let(t.To(Borrow(m.Weight), in.tensor.DType))
	norm := f.Let(t.weightNorm(m, weight, Value{t.detach(product.tensor)}))
	norm.Set(Value{t.detach(norm.tensor)})
	scale := f.Let(t.View(t.Div(Borrow(l.magnitude), norm), 1, -1))
	low := f.Let(t.Linear(t.Linear(in, l.a), l.b))
	switch {
	case result.tensor == nil: // F.linear(x, weight)
		w := &Linear{Weight: weight.tensor}
		if m.conv1D {
			w.Weight = t.transposeWeight(weight.tensor, m).tensor
		}
		result.Set(t.plainLinear(in, w))
		if m.conv1D {
			t.release(w.Weight)
		}
	case m.Bias != nil:
		result.Set(t.Add(result, Borrow(m.Bias))) // result - bias, which is frozen
	}
	out := f.Let(t.Add(t.Mul(t.Shift(scale), result), t.Scale(t.Mul(scale, low))))
	return f.Return(out)
}

// transposeWeight is transpose of peft/utils/other.py. It turns the parameter itself into
// a new parameter, which gets a gradient although the weight is frozen; both live as long
// as the graph.
func (t *Torch) transposeWeight(weight *Tensor, m *Linear) Value {
	out := t.transposePlain(weight)
	out.requiresGrad = weight == m.Weight
	return Value{out}
}

// loraWeight is get_lora_weight: the product of the adapter's matrices,
// computed by calling it on the identity.
func (t *Torch) loraWeight(l *lora) Value {
	f := t.Enter()
	eye := f.Let(t.identity(l.a.Weight.DType, l))
	weight := f.Let(t.loraOf(eye, l))
	return f.Return(weight)
}

// identity is torch.eye with the adapter's number of inputs.
func (t *Torch) identity(dtype DType, l *lora) Value {
	in := l.a.Weight.Shape[1]
	return t.Full(dtype, in, in)
}

// loraOf is lora_B(lora_A(x)).T.
func (t *Torch) loraOf(x *Var, l *lora) Value {
	return t.Transpose(t.Linear(t.Linear(x, l.a), l.b), 0, 1)
}
