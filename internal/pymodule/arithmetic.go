package pymodule

import (
	"strings"

	"memorymark/internal/torch"
)

// This file is what Python's operators do with tensors.

// tensorBinary is a op b if one of them is a tensor.
func (m *Machine) tensorBinary(op string, a, b value) (value, bool) {
	x, left := a.(*tensor)
	y, right := b.(*tensor)
	if m.hosts && (left || right) {
		switch {
		case left && right && x.host && !y.host && len(x.x.Shape) == 0:
			return m.tensorBinary(op, hostNumber(x), b)
		case left && right && y.host && !x.host && len(y.x.Shape) == 0:
			return m.tensorBinary(op, a, hostNumber(y))
		case (!left || x.host) && (!right || y.host) && !m.t.IsOnCPU():
			return m.whereTensorsAre(func() value { out, _ := m.tensorBinary(op, a, b); return out }, []value{a, b}), true
		}
	}
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
	case "Pow":
		return m.tensor(t.PowTensor(in(x), in(y)))
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
	if y.fact.kind == constant && op != "MatMult" && !strings.HasPrefix(op, "Bit") {
		return x.fact.with(op, y.fact.value)
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
	known := x.fact.with(op, n)
	switch op {
	case "Add", "Sub":
		return m.known(t.Shift(in(x)), known)
	case "Mult", "Div":
		return m.known(t.Scale(in(x)), known)
	case "Pow":
		return m.tensor(t.Pow(in(x)))
	case "FloorDiv", "Mod":
		return m.plain(x.x.DType, x)
	}
	panic(failure("%s of a tensor and a number is not known", op))
}

// with is what is known of f op n.
func (f fact) with(op string, n value) fact {
	v := number(n)
	if f.kind != constant && f.kind != steps {
		return fact{}
	}
	if f.kind == constant && (op == "FloorDiv" || op == "Mod" || op == "Div" || op == "Pow") && v != 0 {
		return always(floats(op, f.value, v).(float64))
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
		known := x.fact.with("Mult", int64(-1)).with("Add", n)
		if !x.x.DType.IsFloat() {
			out := m.withNumber(op, x, n)
			out.fact = known
			return out
		}
		return m.known(m.t.Scale(in(x)), known)
	case "Div": // the reciprocal, times the number
		if m.needsGrad(x) {
			return m.tensor(m.t.Reciprocal(in(x)))
		}
		inverse := m.plainFloat(x)
		out := m.plain(inverse.x.DType, inverse)
		m.drop(inverse)
		return out
	case "Pow": // the number becomes a double on the device
		if m.needsGrad(x) {
			return m.tensor(m.t.ExpOf(in(x)))
		}
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
	case isNumber(y) && (op == "Add" || op == "Sub"):
		if m.needsGrad(x) {
			m.t.ShiftInPlace(name)
		}
	case isTensor && op == "Sub" && m.needsGrad(other):
		panic(failure("%s in place is not known", op))
	case isTensor && op == "Sub":
		m.t.ShiftInPlace(name)
	case !m.needsGrad(x): // numbers alone are others
	default:
		panic(failure("%s in place is not known", op))
	}
	return held
}

func (m *Machine) tensorUnary(op string, x *tensor) *tensor {
	if x.host && !m.t.IsOnCPU() {
		return m.whereTensorsAre(func() value { return m.tensorUnary(op, x) }, []value{x}).(*tensor)
	}
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
	case m.hosts && (left && x.host || right && y.host) && (!left || x.host) && (!right || y.host) && !m.t.IsOnCPU() && (left && right || isNumber(a) || isNumber(b)):
		return m.whereTensorsAre(func() value { out, _ := m.tensorCompare(op, a, b); return out }, []value{a, b}), true
	case left && right && x.host && !y.host:
		return m.tensorCompare(op, hostNumber(x), b)
	case left && right && y.host && !x.host:
		return m.tensorCompare(op, a, hostNumber(y))
	case left && right:
		return m.tensor(m.t.Compare(in(x), in(y))), true
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
