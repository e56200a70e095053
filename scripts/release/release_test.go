package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var tested = &release{version: "v1.2.3", commit: "0123456789ab", date: time.Unix(1_700_000_000, 0).UTC()}

// The binary is within its budget, static, knows its version, and its bill
// names what go.mod asks for.
func TestBuild(t *testing.T) {
	p, file := platform{"linux", "amd64"}, filepath.Join(t.TempDir(), "memorymark")
	if err := tested.build(t.Context(), p, file); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, part := range f.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("it asks for a dynamic linker")
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte("v1.2.3")) || !bytes.Contains(data, []byte("0123456789ab")) {
		t.Error("it does not know its version and commit")
	}
	checkBill(t, file, data)
	checkWheel(t, p, data)
}

func checkBill(t *testing.T, file string, data []byte) {
	t.Helper()
	text, err := tested.bill(file, data)
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]string)
	for _, c := range b.Components {
		listed[c.Name] = c.Version
	}
	wanted, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "memorymark/cmd/memorymark").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(wanted)) {
		if path, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok && listed[path] != version {
			t.Errorf("the bill has %s %q, what is linked is %s", path, listed[path], version)
		}
	}
}

func TestArchiveIsReproducible(t *testing.T) {
	files := []entry{{"b", 0o755, []byte("binary")}, {"a", 0o644, []byte("text")}}
	other := []entry{files[1], files[0]}
	var one, two bytes.Buffer
	for _, w := range []struct {
		to    *bytes.Buffer
		files []entry
	}{{&one, files}, {&two, other}} {
		if err := writeArchive(w.to, "memorymark", tested.date, w.files); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same files give different archives")
	}
}
