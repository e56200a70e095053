// Package pymodule evaluates the Python of a model's own source on a symbolic
// PyTorch (package torch). Nothing of it is translated by hand: syntax trees are
// compiled to closures, objects have the reference counts that CPython gives them,
// and so tensors live exactly as long as they do in Python. What stands for Python
// itself, PyTorch and the parts of transformers that are no model code is in Go
// (shims). What is not known is an error that names file and line.
package pymodule

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Script is the Python program that turns source into what ReadTrees reads. It
// imports nothing of that source:
//
//	python -c SCRIPT SOURCE [MODULE...] > trees.zip
//
//go:embed trees.py
var Script string

// EmbeddedTrees are those of the transformers that the program was built with, nil if it
// was built without (make models).
var EmbeddedTrees = sync.OnceValues(func() (*Trees, error) { return embeddedTrees("") })

// embeddedTrees are those of another version, which have the families that were compared
// with recordings of it.
func embeddedTrees(version string) (*Trees, error) {
	data, err := builtTrees(version)
	if err != nil || data == nil {
		return nil, err
	}
	return ReadTrees(data)
}

// node is a node of a syntax tree, as Python's ast has it: its kind, what of it is
// text (a name, an operator, a constant), and its other fields in their order. A
// field that is a list is a node of kind "list".
type node struct {
	kind string
	line int
	text string
	kids []*node
}

// Trees are the syntax trees of modules. A tree is read when it is first asked for.
type Trees struct {
	Version string // of the package
	files   map[string]*zip.File
	names   []string // of the modules, sorted
	mu      sync.Mutex
	read    map[string]*moduleTree
}

type moduleTree struct {
	name, file string
	root       *node
}

const (
	treesMagic = "pytrees2"
	maxTree    = 64 << 20 // bytes of a module, once unpacked
)

// ReadTrees reads the archive that Script wrote.
func ReadTrees(data []byte) (*Trees, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("read syntax trees: %w", err)
	}
	_, version, _ := strings.Cut(archive.Comment, " ")
	trees := &Trees{Version: version, files: make(map[string]*zip.File), read: make(map[string]*moduleTree)}
	for _, f := range archive.File {
		trees.files[f.Name] = f
		trees.names = append(trees.names, f.Name)
	}
	slices.Sort(trees.names)
	return trees, nil
}

// has reports whether there is a module.
func (t *Trees) has(name string) bool { return t.files[name] != nil }

// module returns a module's tree, nil if there is none.
func (t *Trees) module(name string) *moduleTree {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[name]
	if f == nil || t.read[name] != nil {
		return t.read[name]
	}
	m, err := readTree(f)
	if err != nil {
		panic(failure("read the syntax tree of %s: %v", name, err))
	}
	t.read[name] = m
	return m
}

func readTree(f *zip.File) (*moduleTree, error) {
	file, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxTree))
	if err != nil {
		return nil, err
	}
	return parseTree(data)
}

func parseTree(data []byte) (*moduleTree, error) {
	if len(data) < len(treesMagic) || string(data[:len(treesMagic)]) != treesMagic {
		return nil, errors.New("this is no syntax tree, or one of another version of MemoryMark")
	}
	r := &treeReader{data: data[len(treesMagic):]}
	r.texts = make([]string, r.count())
	for i := range r.texts {
		r.texts[i] = string(r.bytes(r.count()))
	}
	m := &moduleTree{name: r.text(), file: r.text()}
	m.root = r.node()
	if r.failed || len(r.data) > 0 {
		return nil, fmt.Errorf("it is damaged, %d bytes before its end", len(r.data))
	}
	return m, nil
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
