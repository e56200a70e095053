package pymodule

import (
	"slices"

	"memorymark/internal/torch"
)

// This file is what Python's operators do with tensors.

// tensorBinary is a op b if one of them is a tensor.
func (m *Machine) tensorBinary(op string, a, b value) (value, bool) {
	x, left := a.(*tensor)
	y, right := b.(*tensor)
	switch {
	case left && right:
		return m.twoTensors(op, x, y), true
	case left && isNumber(b):
		return m.withNumber(op, x, b), true
	case right && isNumber(a):
		return m.numberWith(op, a, y), true
	case left || right:
		panic(raise("TypeError", "unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b)))
	}
	return nil, false
}

func (m *Machine) twoTensors(op string, x, y *tensor) *tensor {
	t := m.t
	if !m.needsGrad(x, y) && op != "MatMult" {
		d := promote(x.x, y.x)
		if op == "Div" && !d.IsFloat() {
			d = m.dtype
		}
		out := m.plain(d, x, y)
		out.fact = combined(op, x, y)
		return out
	}
	d, sum := promote(x.x, y.x), op == "Add" || op == "Sub"
	if sum && (d != x.x.DType && d != y.x.DType || len(x.x.Shape)*len(y.x.Shape) == 0 && x.x.DType != y.x.DType) {
		panic(failure("the type of this sum is not known"))
	}
	switch op {
	case "Add":
		return m.tensor(t.Add(in(x), in(y)))
	case "Sub":
		return m.tensor(t.Sub(in(x), in(y)))
	case "Mult":
		if x.x.DType == torch.Complex64 {
			return m.tensor(t.MulComplex(in(x), in(y)))
		}
		return m.tensor(t.Mul(in(x), in(y)))
	case "Div":
		if !m.needsGrad(y) && x.x.DType.IsFloat() {
			if len(y.x.Shape) == 0 { // 1 / a number of the device, which is kept
				return m.tensor(t.Divide(in(x), in(y)))
			}
			return m.tensor(t.Div(in(x), in(y)))
		}
		return m.tensor(t.Quotient(in(x), in(y)))
	case "MatMult":
		return m.tensor(t.MatMul(in(x), in(y)))
	}
	panic(failure("%s of two tensors is not known", op))
}

// promote is the type of a result of two tensors that need no gradient.
func promote(x, y *torch.Tensor) torch.DType {
	a, b := x.DType, y.DType
	switch {
	case a == b:
		return a
	case len(x.Shape) == 0 && len(y.Shape) > 0 && b.IsFloat():
		return b
	case len(y.Shape) == 0 && len(x.Shape) > 0 && a.IsFloat():
		return a
	case a.IsFloat() && b.IsFloat():
		return torch.Float32
	case a.IsFloat():
		return a
	case b.IsFloat():
		return b
	}
	for _, d := range []torch.DType{torch.Int64, torch.Int32, torch.Uint8} {
		if a == d || b == d {
			return d
		}
	}
	return torch.Bool
}

// combined is what is known of x op y.
func combined(op string, x, y *tensor) fact {
	if x.fact.kind == constant && y.fact.kind == constant && op == "Add" {
		return always(x.fact.value + y.fact.value)
	}
	return fact{}
}

// withNumber is x op n.
func (m *Machine) withNumber(op string, x *tensor, n value) *tensor {
	t := m.t
	_, isFloat := n.(float64)
	if !x.x.DType.IsFloat() && x.x.DType != torch.Complex64 {
		d := x.x.DType
		if isFloat || op == "Div" {
			d = m.dtype
		} else if d == torch.Bool {
			d = torch.Int64
		}
		out := m.plain(d, x)
		out.fact = x.fact.with(op, n)
		return out
	}
	switch op {
	case "Add", "Sub":
		return m.tensor(t.Shift(in(x)))
	case "Mult", "Div":
		return m.tensor(t.Scale(in(x)))
	case "Pow":
		return m.tensor(t.Pow(in(x)))
	case "FloorDiv", "Mod":
		return m.plain(x.x.DType, x)
	}
	panic(failure("%s of a tensor and a number is not known", op))
}

// with is what is known of f op n, of integers.
func (f fact) with(op string, n value) fact {
	v := number(n)
	if f.kind != constant && f.kind != steps {
		return fact{}
	}
	switch op {
	case "Add":
		f.value += v
	case "Sub":
		f.value -= v
	case "Mult":
		f.value, f.step = f.value*v, f.step*v
	default:
		return fact{}
	}
	return f
}

// numberWith is n op x.
func (m *Machine) numberWith(op string, n value, x *tensor) *tensor {
	switch op {
	case "Add", "Mult":
		return m.withNumber(op, x, n)
	case "Sub":
		if !x.x.DType.IsFloat() {
			return m.withNumber(op, x, n)
		}
		return m.tensor(m.t.Scale(in(x)))
	case "Div": // the reciprocal, times the number
		inverse := m.plainFloat(x)
		out := m.plain(inverse.x.DType, inverse)
		m.drop(inverse)
		return out
	case "Pow": // the number becomes a double on the device
		out := m.plainFloat(x)
		m.t.Drop(m.t.Full(torch.Int64))
		return out
	}
	panic(failure("%s of a number and a tensor is not known", op))
}

// tensorInPlace is x op= y.
func (m *Machine) tensorInPlace(op string, x *tensor, y value) value {
	held := hold(x)
	x.fact = fact{}
	name := m.t.InPlace(x.x)
	switch other, isTensor := y.(*tensor); {
	case isTensor && op == "Add":
		m.t.AddInPlace(name, in(other))
	case isTensor && op == "Mult":
		m.t.MulInPlace(name, in(other))
	case isTensor && op == "Div":
		m.t.DivInPlace(name, in(other))
	case isNumber(y) && (op == "Mult" || op == "Div"):
		m.t.ScaleInPlace(name)
	case isNumber(y) && (op == "Add" || op == "Sub") && !m.needsGrad(x):
	default:
		panic(failure("%s in place is not known", op))
	}
	return held
}

func (m *Machine) tensorUnary(op string, x *tensor) *tensor {
	switch {
	case op == "USub" && x.x.DType.IsFloat():
		return m.tensor(m.t.Neg(in(x)))
	case op == "USub":
		return m.plain(x.x.DType, x)
	case op == "Invert" && !x.x.DType.IsFloat():
		out := m.plain(x.x.DType, x)
		if x.fact.kind == constant && x.x.DType == torch.Bool {
			out.fact = always(1 - x.fact.value)
		}
		return out
	}
	panic(failure("%s of a tensor is not known", op))
}

// tensorCompare is a comparison if one of both is a tensor.
func (m *Machine) tensorCompare(op string, a, b value) (value, bool) {
	x, left := a.(*tensor)
	y, right := b.(*tensor)
	switch {
	case left && right:
		return m.tensor(m.t.Compare(in(x), in(y))), true
	case left && x.host && isNumber(b):
		return &tensor{refs: refs{1}, x: m.t.OnHost(torch.Bool), fact: x.fact.compared(op, b), host: true}, true
	case left && isNumber(b):
		return m.known(m.t.Compare(in(x)), x.fact.compared(op, b)), true
	case right && isNumber(a):
		mirrored := map[string]string{"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}
		if other, ok := mirrored[op]; ok {
			op = other
		}
		return m.known(m.t.Compare(in(y)), y.fact.compared(op, a)), true
	case (left || right) && (op == "Eq" || op == "NotEq"):
		return op == "NotEq", true
	}
	return nil, false
}

func (m *Machine) tensorContains(*tensor, value) bool {
	panic(failure("whether a number is in a tensor is not known"))
}

// tensorItem is x[i].
func (m *Machine) tensorItem(x *tensor, i value) value {
	index := []value{i}
	if t, ok := i.(*tuple); ok {
		index = t.items
	}
	if out := m.byTensors(x, index); out != nil {
		return out
	}
	given := 0
	for _, k := range index {
		if k != (none{}) && k != (ellipsis{}) {
			given++
		}
	}
	t, at := m.t, 0
	current := t.Hold(in(x))
	same, kept := true, x.fact
	for _, k := range index {
		switch k := k.(type) {
		case none:
			current = t.Unsqueeze(current, at)
			at++
			same = false
		case ellipsis:
			at = len(current.Tensor().Shape) - (given - places(index, k))
		case *slice:
			n := int(current.Tensor().Dim(at))
			from, to, step := k.bounds(n)
			switch {
			case step > 1 && to == n:
				current = t.Every(current, at, int64(from), int64(step))
				same, kept = false, fact{}
			case step != 1:
				panic(failure("a slice of a tensor with a step and an end is not known"))
			case from == 0 && to == n:
			default:
				current = t.Slice(current, at, int64(from), int64(max(from, to)))
				same = false
				if kept.kind == steps && at == len(current.Tensor().Shape)-1 {
					kept.value += kept.step * float64(from)
				}
			}
			at++
		case int64, bool:
			place(k, int(current.Tensor().Dim(at)), "tensor")
			current = t.Select(current, at)
			same = false
			if kept.kind == steps && at == len(current.Tensor().Shape) {
				kept = fact{}
			}
		default:
			panic(failure("a tensor indexed by a %s is not known", typeName(k)))
		}
	}
	if same {
		current = t.Alias(current)
	}
	out := m.known(current, kept)
	if k, ok := index[len(index)-1].(*slice); ok && k.step == (none{}) && index[0] == (ellipsis{}) && len(index) == 2 {
		from, to, _ := k.bounds(int(x.x.Dim(-1)))
		out.part = &part{x.x, int64(from), int64(to)}
	}
	return out
}

// places is how many of an index stand before the ellipsis.
func places(index []value, _ ellipsis) int {
	n := 0
	for _, k := range index {
		if k == (ellipsis{}) {
			return n
		}
		if k != (none{}) {
			n++
		}
	}
	return n
}

// byTensors is x[a], or x[a, b], of tensors; nil if there is none among them.
func (m *Machine) byTensors(x *tensor, index []value) value {
	n := 0
	for _, k := range index {
		if _, ok := k.(*tensor); ok {
			n++
		}
		if _, ok := k.(*list); ok {
			panic(failure("a tensor indexed by a list is not known"))
		}
	}
	switch {
	case n == 0:
		return nil
	case slices.ContainsFunc(index, func(k value) bool { y, ok := k.(*tensor); return ok && y.x.DType == torch.Bool }):
		mask, ok := index[0].(*tensor)
		if whole, _ := index[len(index)-1].(*slice); ok && mask.fact.kind == ends && len(index) == 2 && whole != nil && *whole == (slice{none{}, none{}, none{}}) {
			return m.tensor(m.t.IndexMask(in(x), in(mask), x.x.Dim(0)))
		}
	case n == 1 && len(index) == 1:
		return m.tensor(m.t.Rows(in(x), in(index[0])))
	case n == 2 && len(index) == 2 && len(x.x.Shape) == 2 && !m.needsGrad(x):
		return m.tensor(m.t.Index(in(x), in(index[0]), in(index[1])))
	case n == 2 && len(index) == 2 && len(x.x.Shape) == 3:
		return m.tensor(m.t.IndexRows(in(x), in(index[0]), in(index[1])))
	}
	panic(failure("a tensor indexed so is not known"))
}

// setTensorItem is x[i] = v of a tensor that needs no gradient.
func (m *Machine) setTensorItem(x *tensor, i, v value) {
	if y, ok := v.(*tensor); m.needsGrad(x) || ok && m.needsGrad(y) {
		panic(failure("the gradient of an assignment to a part is not known"))
	}
	x.fact = fact{}
	if at, ok := i.(*tensor); ok && at.x.DType == torch.Int64 && len(x.x.Shape) == 1 {
		return // index_put_ of numbers into a vector
	}
	m.drop(m.tensorItem(x, i))
}
