package main

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// TestFormula writes a formula and looks for what Homebrew needs: each platform's archive with its
// sum, and an installation of what archives hold. Where there is Ruby, it must be able to read it.
func TestFormula(t *testing.T) {
	r := release{version: "v1.2.3", out: t.TempDir(), project: "https://memorymark.example/", downloads: "https://memorymark.example/1.2.3/"}
	if _, err := r.formula(); err == nil {
		t.Error("there is a formula of archives that are not there")
	}
	for p := range wheelTags {
		if err := writeFile(filepath.Join(r.out, r.archiveName(p)+".tar.gz"), []byte(p.String())); err != nil {
			t.Fatal(err)
		}
	}
	name, err := r.formula()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.out, name)
	data := testmachine.ReadFile(t, file)
	text := string(data)
	for p := range wheelTags {
		want := fmt.Sprintf("url \"https://memorymark.example/1.2.3/memorymark-1.2.3-%s.tar.gz\"\n      sha256 \"%x\"\n", p, sha256.Sum256([]byte(p.String())))
		if !strings.Contains(text, want) {
			t.Errorf("it has no %s", want)
		}
	}
	if ruby, err := exec.LookPath("ruby"); err != nil {
		t.Log("NOT TESTED: whether Ruby reads the formula: there is no ruby")
	} else if out, err := exec.CommandContext(t.Context(), ruby, "-wc", file).CombinedOutput(); err != nil || strings.Contains(string(out), "warning") {
		t.Errorf("%v: %s", err, out)
	}
}
