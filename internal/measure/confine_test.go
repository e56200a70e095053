package measure

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/sandbox"
)

// TestNoSandbox says why code cannot be confined, and what to do.
func TestNoSandbox(t *testing.T) {
	c, err := NewConfinement(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Remove()
	// An interpreter whose files the sandbox cannot show.
	python := filepath.Join(t.TempDir(), "python")
	script := "#!/bin/sh\necho '{\"executable\": \"/nowhere/python\", \"folders\": [\"/nowhere\"]}'\n"
	if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	err = c.Check(t.Context(), Python{Path: python})
	var unsupported *sandbox.UnsupportedError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "/nowhere") || !strings.Contains(unsupported.Fix(), "--allow-code") {
		t.Errorf("%v", err)
	}
}

// Code that was submitted is for its sandbox alone, and does not outlive a process that
// was killed.
func TestCodeIsPrivate(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, err := NewConfinement(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := used.WriteCode(map[string]string{"train.py": "secret"}, "train.py", "make"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(used.Folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may enter its folder: %v, %v", info.Mode(), err)
	}
	abandoned, err := NewConfinement(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	if err := abandoned.lock.Close(); err != nil { // as the end of a process does
		t.Fatal(err)
	}
	last, err := NewConfinement(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(abandoned.Folder); !os.IsNotExist(err) {
		t.Errorf("what a killed process left is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(used.Folder, codeFolder, "train.py")); err != nil {
		t.Errorf("what is in use is gone: %v", err)
	}
	if err := errors.Join(used.Remove(), last.Remove()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestCodeStaysInItsFolder keeps names from being paths.
func TestCodeStaysInItsFolder(t *testing.T) {
	c, err := NewConfinement(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Remove()
	if _, err := c.WriteCode(map[string]string{"../train.py": ""}, "train.py", "make"); err == nil {
		t.Error("a path was taken")
	}
}

func TestMain(m *testing.M) {
	sandbox.Enter()
	os.Exit(m.Run())
}
