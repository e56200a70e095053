// Package pymodule evaluates the Python of a model's own source on a symbolic
// PyTorch (package torch). Nothing of it is translated by hand: syntax trees are
// compiled to closures, objects have the reference counts that CPython gives them,
// and so tensors live exactly as long as they do in Python. What stands for Python
// itself, PyTorch and the parts of transformers that are no model code is in Go
// (shims). What is not known is an error that names file and line.
package pymodule

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
)

// Script is the Python program that turns source into what ReadTrees reads. It
// imports ast alone:
//
//	python -c SCRIPT ROOT MODULE... > trees
//
//go:embed trees.py
var Script string

// node is a node of a syntax tree, as Python's ast has it: its kind, what of it is
// text (a name, an operator, a constant), and its other fields in their order. A
// field that is a list is a node of kind "list".
type node struct {
	kind string
	line int
	text string
	kids []*node
}

// Trees are the syntax trees of modules.
type Trees struct {
	modules map[string]*moduleTree
}

type moduleTree struct {
	name, file string
	root       *node
}

const treesMagic = "pytrees1"

// ReadTrees reads what Script wrote.
func ReadTrees(data []byte) (*Trees, error) {
	if len(data) < len(treesMagic) || string(data[:len(treesMagic)]) != treesMagic {
		return nil, errors.New("these are no syntax trees")
	}
	r := &treeReader{data: data[len(treesMagic):]}
	r.texts = make([]string, r.count())
	for i := range r.texts {
		r.texts[i] = string(r.bytes(r.count()))
	}
	trees := &Trees{modules: make(map[string]*moduleTree)}
	for range r.count() {
		m := &moduleTree{name: r.text(), file: r.text()}
		m.root = r.node()
		trees.modules[m.name] = m
	}
	if r.failed || len(r.data) > 0 {
		return nil, fmt.Errorf("the syntax trees are damaged, %d bytes before their end", len(r.data))
	}
	return trees, nil
}

// treeReader reads numbers as unsigned varints; what comes after damage is zero.
type treeReader struct {
	data   []byte
	texts  []string
	failed bool
}

// count is a number of things of which each takes a byte at least.
func (r *treeReader) count() int {
	n := r.number()
	if n > uint64(len(r.data)) {
		r.failed, r.data = true, nil
		return 0
	}
	return int(n)
}

func (r *treeReader) number() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *treeReader) bytes(n int) []byte {
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *treeReader) text() string {
	if n := r.number(); n < uint64(len(r.texts)) {
		return r.texts[n]
	}
	r.failed = true
	return ""
}

func (r *treeReader) node() *node {
	kind := r.text()
	if kind == "" {
		return nil
	}
	n := &node{kind: kind, line: int(r.number()), text: r.text()}
	n.kids = make([]*node, r.count())
	for i := range n.kids {
		n.kids[i] = r.node()
	}
	return n
}
