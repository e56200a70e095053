package pymodule

import (
	"slices"

	"memorymark/internal/torch"
)

// This file is x[i] of tensors (torch/csrc/autograd/python_variable_indexing.cpp,
// applySlicing): numbers and slices make views, then tensors index what is left.

// tensorItem is x[i].
func (m *Machine) tensorItem(x *tensor, i value) value {
	if x.host && !m.t.IsOnCPU() {
		return m.whereTensorsAre(func() value { return m.tensorItem(x, i) }, []value{x})
	}
	if out := m.byKnownTensors(x, subscripts(i)); out != nil {
		return out
	}
	if k, ok := i.(int64); ok && x.values != nil {
		return m.hostScalar(x, x.values[place(k, len(x.values), "tensor")])
	}
	v := m.viewed(m.t.Hold(in(x)), x.fact, subscripts(i))
	v.part = partOf(x, subscripts(i))
	defer v.release(m)
	if len(v.indices) == 0 {
		if v.same {
			v.current = m.t.Alias(v.current)
		}
		out := m.known(v.current, v.fact)
		out.part = v.part
		return out
	}
	if rows := v.mask(m); rows != nil {
		return rows
	}
	if at := v.indices; v.same && len(at) == 1 && at[0] != nil {
		return m.tensor(m.t.Rows(v.current, torch.Borrow(at[0])))
	}
	return m.tensor(m.t.IndexBy(v.current, v.indices))
}

func subscripts(i value) []value {
	if t, ok := i.(*tuple); ok {
		return t.items
	}
	return []value{i}
}

// view is what slices and numbers leave of a tensor, and what indexes it then.
type view struct {
	current torch.Value
	same    bool // as the tensor that is indexed
	fact    fact
	part    *part
	indices []*torch.Tensor // by dimension, nil for none
	masks   []*tensor       // of the indices that are booleans
	made    []value         // indices that were made of lists
}

func (v *view) release(m *Machine) { m.dropAll(v.made) }

// viewed applies slices and numbers to a tensor, which it takes over.
func (m *Machine) viewed(x torch.Value, f fact, index []value) *view {
	dims := len(x.Tensor().Shape)
	given := 0
	for _, k := range index {
		switch k := k.(type) {
		case none, ellipsis, bool:
		case *tensor:
			given += max(1, map[bool]int{true: len(k.x.Shape)}[k.x.DType == torch.Bool])
		default:
			given++
		}
	}
	v := &view{current: x, same: true, fact: f}
	at := 0
	for _, k := range index {
		switch k := k.(type) {
		case none:
			v.current = m.t.Unsqueeze(v.current, at)
			v.same = false
			at++
		case bool:
			v.current = m.t.Unsqueeze(v.current, at)
			v.same = false
			at++
			if !k {
				panic(failure("a tensor indexed by False is not known"))
			}
		case ellipsis:
			at += dims - given
		case *slice:
			m.slice(v, at, k)
			at++
		case *tensor, *list, *tuple:
			at = m.indexed(v, at, k)
		default:
			m.assignSelected(v, at, k)
		}
	}
	return v
}

// partOf is a range of the last dimension, nil for anything else.
func partOf(x *tensor, index []value) *part {
	k, ok := index[len(index)-1].(*slice)
	if !ok || k.step != (none{}) || index[0] != (ellipsis{}) || len(index) != 2 {
		return nil
	}
	from, to, _ := k.bounds(int(x.x.Dim(-1)))
	return &part{x.x, int64(from), int64(to)}
}

func (m *Machine) slice(v *view, at int, k *slice) {
	n := int(v.current.Tensor().Dim(at))
	from, to, step := k.bounds(n)
	switch {
	case step < 1:
		panic(raise("ValueError", "step must be greater than zero"))
	case step > 1:
		v.current = m.t.SliceStep(v.current, at, int64(from), int64(max(from, to)), int64(step))
		v.same, v.fact = false, v.fact.unless(true)
	case from == 0 && to == n && (k.to != (none{}) || !m.t.Version.Before(2, 11)): // see torch.Slice
	default:
		v.current = m.t.Slice(v.current, at, int64(from), int64(max(from, to)))
		v.same = false
		if v.fact.kind == steps && at == len(v.current.Tensor().Shape)-1 {
			v.fact.value += v.fact.step * float64(from)
		}
	}
}

func (m *Machine) assignSelected(v *view, at int, k value) {
	i := place(k, int(v.current.Tensor().Dim(at)), "tensor")
	v.current = m.t.Select(v.current, at)
	v.same = false
	if v.fact.kind == steps && at == len(v.current.Tensor().Shape) {
		v.fact = always(v.fact.value + v.fact.step*float64(i))
	}
}

// indexed notes a tensor, or a list that becomes one of the card, among the indices.
func (m *Machine) indexed(v *view, at int, k value) int {
	x, ok := k.(*tensor)
	switch {
	case !ok:
		x = m.tensorOf(&args{pos: []value{k}, names: []string{"device"}, named: []value{device{m.t.IsOnCPU()}}}).(*tensor)
		v.made = append(v.made, x)
	case x.host && !m.t.IsOnCPU(): // is copied to the card
		x = m.known(m.t.Full(x.x.DType, x.x.Shape...), x.fact)
		v.made = append(v.made, x)
	}
	for len(v.indices) < at {
		v.indices = append(v.indices, nil)
	}
	v.indices = append(v.indices, x.x)
	if x.x.DType != torch.Bool && x.x.DType != torch.Uint8 {
		if len(x.x.Shape) == 0 { // a number on the card selects
			v.masks = append(v.masks, nil)
		}
		return at + 1
	}
	v.masks = append(v.masks, x)
	for range len(x.x.Shape) - 1 {
		v.indices = append(v.indices, nil)
	}
	return at + len(x.x.Shape)
}

// mask is x[mask] where all elements of the mask are known; nil if there is no mask.
func (v *view) mask(m *Machine) value {
	masks := slices.DeleteFunc(slices.Clone(v.masks), func(x *tensor) bool { return x == nil })
	if len(masks) == 0 {
		return nil
	}
	x := masks[0]
	if len(masks) > 1 || x.fact.kind != constant || v.indices[0] != x.x {
		panic(failure("how many elements of a mask are true is not known"))
	}
	n := int64(0)
	if x.fact.value != 0 {
		n = x.x.Numel()
	}
	return m.tensor(m.t.MaskedRows(v.current, torch.Borrow(x.x), n))
}

// byKnownTensors is x[a], or x[a, b], of which the rules are verified on their own; nil for
// anything else.
func (m *Machine) byKnownTensors(x *tensor, index []value) value {
	for _, k := range index {
		y, ok := k.(*tensor)
		if ok && y.host || !ok && len(index) == 2 && k == index[0] {
			return nil
		}
	}
	mask, ok := index[0].(*tensor)
	if !ok {
		return nil
	}
	if mask.x.DType == torch.Bool {
		whole, _ := index[len(index)-1].(*slice)
		if mask.fact.kind == ends && len(index) == 2 && whole != nil && *whole == (slice{none{}, none{}, none{}}) {
			return m.tensor(m.t.MaskedRows(in(x), in(mask), x.x.Dim(0)))
		}
		return nil
	}
	if len(index) != 2 {
		return nil
	}
	second, ok := index[1].(*tensor)
	switch {
	case !ok || second.x.DType == torch.Bool:
	case len(x.x.Shape) == 2 && !m.needsGrad(x):
		return m.tensor(m.t.Index(in(x), in(mask), in(second)))
	case len(x.x.Shape) == 3 && slices.Equal(mask.x.Shape, second.x.Shape) && len(mask.x.Shape) == 1:
		return m.tensor(m.t.IndexRows(in(x), in(mask), in(second)))
	}
	return nil
}

// setTensorItem is x[i] = v.
func (m *Machine) setTensorItem(x *tensor, i, v value) {
	y, isTensor := v.(*tensor)
	switch { // ids among ids are ids
	case (x.fact.kind == tokens || x.fact == always(0)) && (isTensor && y.fact.kind == tokens || !isTensor && x.fact.kind == tokens):
		x.fact = x.fact.amongTokens(v)
	default:
		x.fact = fact{}
	}
	if x.host {
		return
	}
	index := subscripts(i)
	byTensor := slices.ContainsFunc(index, func(k value) bool {
		switch k.(type) {
		case *tensor, *list:
			return true
		}
		return false
	})
	needed := m.needsGrad(x) || isTensor && m.needsGrad(y)
	if byTensor && !needed {
		m.putPlain(x, index)
		return
	}
	if byTensor {
		m.put(x, index, v)
		return
	}
	at := m.viewed(m.t.Detach(in(x)), fact{}, index)
	defer at.release(m)
	if needed {
		if x.x.IsView() {
			panic(failure("the gradient of an assignment to a part of a view is not known"))
		}
		var source torch.X
		if isTensor && !y.host {
			source = in(y)
		}
		m.t.SetPart(m.t.InPlace(x.x), at.current.Tensor().Shape, source)
	}
	if isTensor && y.host && (!at.current.Tensor().IsContiguous() || y.x.DType != x.x.DType) { // is copied to the card first
		m.t.Drop(m.t.Full(x.x.DType, at.current.Tensor().Shape...))
	}
	m.t.Drop(at.current)
}

// amongTokens is what is known of ids once some are others, or a number.
func (f fact) amongTokens(v value) fact {
	y, isTensor := v.(*tensor)
	switch {
	case isTensor && (f.kind == constant || f.value == y.fact.value):
		return y.fact
	case !isTensor && isNumber(v) && number(v) < f.value:
		return f
	}
	return fact{kind: tokens}
}

// putPlain is index_put_ of what needs no gradient: indices of different strides are made
// dense for the call.
func (m *Machine) putPlain(x *tensor, index []value) {
	if one, ok := index[0].(*tensor); ok && len(index) == 1 && (one.x.DType == torch.Bool || len(x.x.Shape) == 1) {
		return // masked_fill_, or numbers into a vector
	}
	m.t.NoGrad(func() {
		v := m.viewed(m.t.Detach(in(x)), fact{}, index)
		if !slices.ContainsFunc(v.masks, func(x *tensor) bool { return x != nil }) {
			m.t.PutBy(m.t.InPlace(v.current.Tensor()), v.indices, torch.ValueOf(nil))
		}
		m.t.Drop(v.current)
		v.release(m)
	})
}

// put is index_put_ of what needs a gradient.
func (m *Machine) put(x *tensor, index []value, v value) {
	at, isOne := index[0].(*tensor)
	if !isOne || len(index) != 1 || at.x.DType != torch.Bool {
		panic(failure("the gradient of an assignment to elements is not known"))
	}
	y, isTensor := v.(*tensor)
	switch {
	case !isTensor || !m.needsGrad(y):
		m.t.MaskedFillInPlace(m.t.InPlace(x.x), in(at))
	case at.fact.kind != constant:
		panic(failure("how many elements of a mask are true is not known"))
	default:
		rows := int64(0)
		if at.fact.value != 0 {
			rows = at.x.Numel()
		}
		m.t.PutMasked(m.t.InPlace(x.x), in(at), in(y), rows)
	}
}
