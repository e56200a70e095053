package pymodule

import "slices"

// This file says where operators run: on the card, or on the CPU where all of their
// tensors are.

// placeOperators makes operators run where their tensors are.
func placeOperators() {
	moves := []string{"to", "cuda", "cpu", "copy_", "item", "tolist", "size", "dim", "numel"}
	for _, table := range []map[string]*builtin{torchFunctions, nnFunctions, tensorMethods} {
		seen := make(map[*builtin]bool)
		for name, f := range table {
			if slices.Contains(moves, name) || seen[f] {
				continue
			}
			seen[f] = true
			call := f.call
			f.call = func(m *Machine, a *args) value {
				if !m.hosts {
					return call(m, a)
				}
				return m.whereTensorsAre(func() value { return call(m, a) }, a.pos, a.named)
			}
		}
	}
}

// whereTensorsAre runs an operator on tensors. A number that is a tensor of the CPU may meet
// others of the card.
func (m *Machine) whereTensorsAre(f func() value, operands ...[]value) (out value) {
	if onCPU, onCard := devices(operands...); !onCPU || onCard {
		return f()
	}
	m.t.OnCPU(func() { out = f() })
	atHost(out)
	return out
}

// devices reports where tensors are.
func devices(operands ...[]value) (onCPU, onCard bool) {
	for _, values := range operands {
		for _, v := range values {
			switch x := v.(type) {
			case *tensor:
				onCPU, onCard = onCPU || x.host, onCard || !x.host
			case *tuple:
				a, b := devices(x.items)
				onCPU, onCard = onCPU || a, onCard || b
			case *list:
				a, b := devices(x.items)
				onCPU, onCard = onCPU || a, onCard || b
			}
		}
	}
	return onCPU, onCard
}

// atHost marks tensors that were made on the CPU.
func atHost(v value) {
	switch x := v.(type) {
	case *tensor:
		x.host = true
	case *tuple:
		for _, item := range x.items {
			atHost(item)
		}
	case *list:
		for _, item := range x.items {
			atHost(item)
		}
	}
}

// hostNumber is a number that is a tensor of the CPU, as an operator on tensors of the card
// takes it.
func hostNumber(x *tensor) value {
	switch {
	case x.fact.kind == constant && x.x.DType.IsFloat():
		return x.fact.value
	case x.fact.kind == constant:
		return int64(x.fact.value)
	case x.x.DType.IsFloat():
		return 0.5 // whatever it is
	}
	return int64(1)
}
