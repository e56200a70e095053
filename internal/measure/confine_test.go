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
