package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"memorymark/internal/testmachine"
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
	data := testmachine.ReadFile(t, file)
	if !bytes.Contains(data, []byte("v1.2.3")) || !bytes.Contains(data, []byte("0123456789ab")) {
		t.Error("it does not know its version and commit")
	}
	r := *tested
	if r.parts, err = ofOthers(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkWheel(t, &r, p, data, checkBill(t, &r, file, data))
}

// checkBill holds a bill to what CycloneDX and purls ask for, and to what is
// linked.
func checkBill(t *testing.T, r *release, file string, data []byte) []byte {
	t.Helper()
	text, err := r.bill(file, data)
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.SerialNumber) {
		t.Errorf("its number is %s", b.SerialNumber)
	}
	listed, urls := make(map[string]string), make(map[string]bool)
	for _, c := range b.Components {
		if urls[c.URL] || c.Ref != c.URL || !slices.Contains(b.Dependencies[0].DependsOn, c.Ref) {
			t.Errorf("%+v is there twice, or nothing depends on it", c)
		}
		if !regexp.MustCompile(`^pkg:(golang/[\w./~-]+|npm/(%40[\w.-]+/)?[\w.-]+|pypi/[\w-]+)@v?\d[\w.+-]*$`).MatchString(c.URL) {
			t.Errorf("%s has the purl %q", c.Name, c.URL)
		}
		if !regexp.MustCompile(`^[\w.-]+( (AND|OR) [\w.-]+)*$`).MatchString(c.Licenses[0].Expression) {
			t.Errorf("%s has the licence %q", c.Name, c.Licenses[0].Expression)
		}
		listed[c.Name], urls[c.URL] = c.Version, true
	}
	if want := strings.TrimPrefix(runtime.Version(), "go"); listed["stdlib"] != want {
		t.Errorf("it has Go's library %q, want %s", listed["stdlib"], want)
	}
	for _, name := range []string{"@tanstack/react-query", "tailwindcss", "rolldown"} {
		if listed[name] == "" {
			t.Errorf("it does not have the page's %s", name)
		}
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
	return text
}

// Terms name a licence where nothing else does; those that are not known end a
// release.
func TestExpression(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\nVersion 2.0":                                                     "Apache-2.0",
		"Permission is hereby granted, free of\ncharge, to any person":                    "MIT",
		"Redistribution and use in source and binary forms … endorse or promote products": "BSD-3-Clause",
		"Redistribution and use in source\n and binary forms …":                           "BSD-2-Clause",
		"Permission is hereby granted, free of charge. The rest: Apache License":          "Apache-2.0 AND MIT",
		"All rights reserved": "",
	} {
		folder := t.TempDir()
		testmachine.WriteFile(t, filepath.Join(folder, "LICENSE"), text)
		if got, err := (part{name: "a module", folder: folder}).expression(); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	if text, err := (part{name: "a package", license: "GPL-3.0-only"}).statedLicense(); err == nil {
		t.Errorf("a package without the text of its licence has %q", text)
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
	if len(modules) < 20 || len(packages) < 50 {
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
	text, err := licenses(slices.Concat(modules, packages))
	if err != nil {
		t.Fatal(err)
	}
	works := strings.Split(string(text), strings.Repeat("=", 80)+"\n")[1:]
	if len(works) != len(modules)+len(packages) {
		t.Errorf("%d works, want %d", len(works), len(modules)+len(packages))
	}
	for i, p := range slices.Concat(modules, packages) {
		if !strings.HasPrefix(works[i], p.name+" "+p.version+"\n") || p.license == "MIT" && !strings.Contains(works[i], "Permission is hereby granted") {
			t.Errorf("%s: %s", p.name, works[i])
		}
	}
	for _, want := range []string{
		"Copyright 2009 The Go Authors", "github.com/nats-io/nats-server/v2", "Apache License", "react-dom 19", "Copyright (c) Meta Platforms",
		"Copyright (c) Tailwind Labs", "Copyright (c) Anton Korzunov <thekashey@gmail.com>\n\nPermission is hereby granted",
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("it does not contain %q", want)
		}
	}
}

// A release that was signed with the key of the repository is checked as
// docs/releases.md says, and one that was changed, or signed with another key, is
// found out.
func TestSignature(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("NOT TESTED: it needs ssh-keygen")
	}
	commands := verification(t)
	t.Chdir(t.TempDir())
	keys := t.TempDir()
	r := *tested
	r.out, r.key = t.TempDir(), filepath.Join(keys, "key")
	write := func(path, text string) {
		testmachine.WriteFile(t, path, text)
	}
	if err := r.checkKey(); err == nil || !strings.Contains(err.Error(), "make release-key") {
		t.Errorf("without a public key: %v", err)
	}
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", r.key)
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(keys, "other"))
	if err := allow(r.key); err != nil {
		t.Fatal(err)
	}
	if err := r.checkKey(); err != nil {
		t.Error(err)
	}
	archive := filepath.Join(r.out, "memorymark.tar.gz")
	write(archive, "an archive")
	sums := func() {
		if err := r.writeSums([]string{"memorymark.tar.gz"}); err != nil {
			t.Fatal(err)
		}
	}
	sums()
	other := r
	other.key = filepath.Join(keys, "other")
	if err := other.sign(t.Context()); err == nil || !strings.Contains(err.Error(), "is not the one in allowed_signers") {
		t.Errorf("signed with another key: %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.out, sumsName+".sig")); err == nil {
		t.Error("a signature that nobody takes is left")
	}
	if err := r.sign(t.Context()); err != nil {
		t.Fatal(err)
	}
	signers := testmachine.ReadFile(t, signersName)
	write(filepath.Join(r.out, signersName), string(signers))
	verify := func() error {
		c := exec.CommandContext(t.Context(), "sh", "-ec", commands)
		c.Dir = r.out
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	if err := verify(); err != nil {
		t.Errorf("it is not taken: %v", err)
	}
	write(archive, "another one")
	if verify() == nil {
		t.Error("a changed archive is taken")
	}
	sums()
	if verify() == nil {
		t.Error("changed sums are taken")
	}
}

// verification is what docs/releases.md tells users to run.
func verification(t *testing.T) string {
	t.Helper()
	doc := testmachine.ReadFile(t, "../../docs/releases.md")
	_, rest, _ := strings.Cut(string(doc), "```sh\nssh-keygen -Y verify")
	commands, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/releases.md does not say how to check a signature")
	}
	return "ssh-keygen -Y verify" + commands
}

// A wheel to install here is nothing to be alarmed about.
func TestUnsigned(t *testing.T) {
	for _, wheels := range []bool{true, false} {
		r := release{onlyWheels: wheels, out: "build/wheels"}
		if said := r.unsigned(); strings.Contains(said, "UNSIGNED") == wheels {
			t.Errorf("only wheels: %v: %q", wheels, said)
		}
	}
}

// What could not be built again is not signed.
func TestNothingUncommittedIsSigned(t *testing.T) {
	r := *tested
	r.version, r.key = "v1.2.3-4-g0123abc-dirty", "key"
	if err := r.checkKey(); err == nil || !strings.Contains(err.Error(), "commit them") {
		t.Error(err)
	}
	if r.key = ""; r.checkKey() != nil {
		t.Error("unsigned, it may be built from anything")
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
