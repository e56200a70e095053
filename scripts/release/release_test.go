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
	t.Chdir("../..")
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
	if !strings.Contains(string(text), `"pkg:npm/%40tanstack/react-query@`) {
		t.Error("the bill does not have the page's packages")
	}
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

// The licences of all that is linked and bundled are there, with their texts.
func TestLicenses(t *testing.T) {
	t.Chdir("../..")
	modules, err := linkedModules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	packages, err := bundledPackages("web")
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 30 || len(packages) < 50 {
		t.Fatalf("%d modules, %d packages", len(modules), len(packages))
	}
	for _, p := range modules {
		texts, err := p.texts()
		if err != nil || len(texts) == 0 {
			t.Errorf("%s: %d licences, %v", p.name, len(texts), err)
		}
	}
	for _, p := range packages {
		if p.license == "" || p.version == "" {
			t.Errorf("%+v", p)
		}
	}
	if _, err := os.Stat("web/node_modules"); err != nil {
		t.Skip("NOT TESTED further: the page's packages are not installed")
	}
	text, err := licenses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Copyright 2009 The Go Authors", "github.com/nats-io/nats-server/v2", "Apache License", "react-dom 19", "Copyright (c) Meta Platforms"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("it does not contain %q", want)
		}
	}
}

// A release that was signed is checked as docs/releases.md says, and one that
// was changed is found out.
func TestSignature(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("NOT TESTED: it needs ssh-keygen")
	}
	doc, err := os.ReadFile("../../docs/releases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```sh\nssh-keygen -Y verify")
	check, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/releases.md does not say how to check a signature")
	}
	r := *tested
	r.out, r.key = t.TempDir(), filepath.Join(t.TempDir(), "key")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", r.key)
	public, err := os.ReadFile(r.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(r.out, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("allowed_signers", "release@memorymark "+string(public))
	write("memorymark.tar.gz", "an archive")
	if err := r.writeSums([]string{"memorymark.tar.gz"}); err != nil {
		t.Fatal(err)
	}
	if err := r.sign(t.Context()); err != nil {
		t.Fatal(err)
	}
	verify := func() error {
		c := exec.CommandContext(t.Context(), "sh", "-ec", "ssh-keygen -Y verify"+check)
		c.Dir = r.out
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	if err := verify(); err != nil {
		t.Errorf("it is not taken: %v", err)
	}
	write("memorymark.tar.gz", "another one")
	if verify() == nil {
		t.Error("a changed archive is taken")
	}
	if err := r.writeSums([]string{"memorymark.tar.gz"}); err != nil {
		t.Fatal(err)
	}
	if verify() == nil {
		t.Error("changed sums are taken")
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
