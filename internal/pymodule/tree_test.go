package pymodule

import (
	"archive/zip"
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// trees of one module, `x`, of the file x.py: a Name of the text v within a list.
func someTrees() []byte {
	data := []byte(treesMagic)
	texts := []string{"", "x", "x.py", "list", "Name", "v"}
	data = append(data, byte(len(texts)))
	for _, text := range texts {
		data = append(append(data, byte(len(text))), text...)
	}
	return append(data, 1, 2, 3, 0, 0, 1, 4, 7, 5, 0)
}

// archived is an archive of one module.
func archived(t *testing.T, tree []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.Create("x")
	if err == nil {
		_, err = f.Write(tree)
	}
	if err := errors.Join(err, w.SetComment("some 1.2"), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReadTrees(t *testing.T) {
	trees, err := ReadTrees(archived(t, someTrees()))
	if err != nil {
		t.Fatal(err)
	}
	m := trees.module("x")
	if !trees.has("x") || trees.has("y") || trees.module("y") != nil || trees.Version != "1.2" {
		t.Errorf("it is of version %q and has %v", trees.Version, trees.names)
	}
	if m == nil || m.file != "x.py" || m.root.kind != "list" || len(m.root.kids) != 1 {
		t.Fatalf("read %+v", m)
	}
	if n := m.root.kids[0]; n.kind != "Name" || n.text != "v" || n.line != 7 {
		t.Errorf("read the node %+v", n)
	}
}

// What is damaged is an error, wherever the damage is.
func TestDamagedTrees(t *testing.T) {
	whole := someTrees()
	for n := range whole {
		if _, err := parseTree(whole[:n]); err == nil {
			t.Errorf("the first %d bytes of %d are read", n, len(whole))
		}
		other := slices.Clone(whole)
		other[n] = 0xff // no error where it is within a text, but never a panic
		_, _ = parseTree(other)
	}
	if _, err := ReadTrees([]byte(strings.Repeat("x", 20))); err == nil {
		t.Error("anything is read")
	}
}
