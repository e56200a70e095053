package pymodule

import (
	"slices"
	"strings"
)

// This file holds torch.einsum, which is a product of matrices between views
// (aten/src/ATen/native/Linear.cpp).

// einsum is torch.einsum of two tensors: both are permuted to the batch, what is left of
// each, and what is summed, and multiplied by bmm (aten/src/ATen/native/Linear.cpp).
func (m *Machine) einsum(equation string, operands []value) value {
	if len(operands) == 1 {
		if l, ok := itemsIn(operands[0]); ok {
			operands = l
		}
	}
	left, right, _ := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	inputs := strings.Split(left, ",")
	if strings.Contains(equation, "...") && len(inputs) == 2 { // dimensions without letters get some
		n := len(operands[0].(*tensor).x.Shape) - len(strings.ReplaceAll(inputs[0], ".", ""))
		if n != len(operands[1].(*tensor).x.Shape)-len(strings.ReplaceAll(inputs[1], ".", "")) || n < 0 || n > 8 {
			panic(failure("the einsum %q is not known", equation))
		}
		letters := "ABCDEFGH"[:n]
		right = strings.ReplaceAll(right, "...", letters)
		for i := range inputs {
			inputs[i] = strings.ReplaceAll(inputs[i], "...", letters)
		}
	}
	if len(inputs) != 2 || strings.Contains(right+left, ".") && !strings.Contains(equation, "...") {
		panic(failure("the einsum %q is not known", equation))
	}
	x, y := operands[0].(*tensor), operands[1].(*tensor)
	var batch, onlyX, onlyY, summed []rune
	sizes := make(map[rune]int64)
	for i, c := range []rune(inputs[0]) {
		sizes[c] = x.x.Shape[i]
	}
	for i, c := range []rune(inputs[1]) {
		sizes[c] = max(sizes[c], y.x.Shape[i])
	}
	for _, c := range right {
		inX, inY := strings.ContainsRune(inputs[0], c), strings.ContainsRune(inputs[1], c)
		switch {
		case inX && inY:
			batch = append(batch, c)
		case inX:
			onlyX = append(onlyX, c)
		default:
			onlyY = append(onlyY, c)
		}
	}
	for _, c := range inputs[0] {
		if !strings.ContainsRune(right, c) {
			if !strings.ContainsRune(inputs[1], c) {
				panic(failure("the einsum %q is not known", equation))
			}
			summed = append(summed, c)
		}
	}
	order := append(append(slices.Clone(batch), onlyX...), append(slices.Clone(onlyY), summed...)...)
	all := append(slices.Clone([]rune(right)), summed...)
	_ = order
	a, b := m.aligned(x, inputs[0], all), m.aligned(y, inputs[1], all)
	if len(summed) == 0 {
		out := m.twoTensors("Mult", a, b)
		m.drop(a)
		m.drop(b)
		return out
	}
	return m.sumProduct(a, b, all, batch, onlyX, onlyY, summed, sizes, len([]rune(right)))
}

// aligned permutes a tensor to the order of all letters, with dimensions of size 1 for
// those that it does not have.
func (m *Machine) aligned(x *tensor, letters string, all []rune) *tensor {
	have := []rune(letters)
	var dims []int
	for _, c := range all {
		if i := slices.Index(have, c); i >= 0 {
			dims = append(dims, i)
		}
	}
	v := m.t.Permute(in(x), dims...)
	for i, c := range all {
		if !slices.Contains(have, c) {
			v = m.t.Unsqueeze(v, i)
		}
	}
	return m.tensor(v)
}

// sumProduct is sumproduct_pair: both operands as batches of matrices, their product, and
// back.
func (m *Machine) sumProduct(x, y *tensor, all, batch, onlyX, onlyY, summed []rune, sizes map[rune]int64, outs int) value {
	at := func(letters []rune) (dims []int) {
		for _, c := range letters {
			dims = append(dims, slices.Index(all, c))
		}
		return dims
	}
	size := func(letters []rune) int64 {
		n := int64(1)
		for _, c := range letters {
			n *= sizes[c]
		}
		return n
	}
	left := m.t.Permute(in(x), slices.Concat(at(batch), at(onlyX), at(summed), at(onlyY))...)
	left = m.t.Reshape(left, size(batch), size(onlyX), size(summed))
	m.drop(x)
	right := m.t.Permute(in(y), slices.Concat(at(batch), at(summed), at(onlyY), at(onlyX))...)
	right = m.t.Reshape(right, size(batch), size(summed), size(onlyY))
	m.drop(y)
	product := m.t.BMM(left, right)
	order := slices.Concat(batch, onlyX, onlyY)
	var shape []int64
	for _, c := range order {
		shape = append(shape, sizes[c])
	}
	product = m.t.View(product, shape...)
	back := make([]int, outs)
	for i := range outs {
		back[i] = slices.Index(order, all[i])
	}
	return m.tensor(m.t.Permute(product, back...))
}
