package measure

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePython writes a program that answers like an interpreter.
func fakePython(t *testing.T, folder, script string) string {
	t.Helper()
	path := filepath.Join(folder, "python")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindPython(t *testing.T) {
	folder := t.TempDir()
	path := fakePython(t, filepath.Join(folder, "bin"), "exit 0")
	for _, c := range []struct {
		name, named string
		env         map[string]string
		from        string
		path        string
	}{
		{"named", path, map[string]string{"MEMORYMARK_PYTHON": "elsewhere"}, "--python", path},
		{"variable", "", map[string]string{"MEMORYMARK_PYTHON": path, "VIRTUAL_ENV": "/nowhere"}, "$MEMORYMARK_PYTHON", path},
		{"virtual environment", "", map[string]string{"VIRTUAL_ENV": folder}, "$VIRTUAL_ENV", path},
	} {
		p, err := FindPython(c.named, func(key string) string { return c.env[key] })
		if err != nil || p.Path != c.path || p.From != c.from {
			t.Errorf("%s: %+v, %v", c.name, p, err)
		}
	}
	if p, err := FindPython("/nowhere/python", os.Getenv); err == nil || !strings.Contains(err.Error(), "/nowhere/python") {
		t.Errorf("a Python that is not there: %+v, %v", p, err)
	}
}

func TestInspect(t *testing.T) {
	ctx := context.Background()
	chatty := fakePython(t, t.TempDir(), `echo "warning: old driver"; echo '{"python":"3.12.1","torch":"2.11.0+cu130","cards":[{"name":"NVIDIA L4","memory_bytes":7}]}'`)
	e, err := Inspect(ctx, Python{Path: chatty})
	if err != nil || e.Torch != "2.11.0+cu130" || len(e.Cards) != 1 || e.Cards[0].Memory != 7 {
		t.Errorf("%+v, %v", e, err)
	}
	broken := fakePython(t, t.TempDir(), `echo "ImportError: libfoo.so" >&2; exit 1`)
	if _, err := Inspect(ctx, Python{Path: broken}); err == nil || !strings.Contains(err.Error(), "ImportError: libfoo.so") {
		t.Errorf("a failure came back as %v", err)
	}
	silly := fakePython(t, t.TempDir(), `echo hello`)
	if _, err := Inspect(ctx, Python{Path: silly}); err == nil {
		t.Error("hello was taken for an answer")
	}
}

// TestInspectReal asks the Python that tests run with, if there is one.
func TestInspectReal(t *testing.T) {
	p, err := FindPython("", os.Getenv)
	if err != nil {
		t.Skip("NOT TESTED: python3 was not found, so the script was not run")
	}
	e, err := Inspect(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if e.Python == "" || (e.Torch == "") != (e.TorchError != "") {
		t.Errorf("%+v", e)
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		version, than string
		want          bool
	}{
		{"2.8.0", "2.9", true},
		{"2.9", "2.9.0", false},
		{"2.11.0+cu130", "2.9", false},
		{"2.4.1", "2.4", false},
		{"4.49.0.dev0", "4.50", true},
		{"5.17.0", "5.0", false},
		{"2.10.0a0+git", "2.11", true},
		{"", "1", true},
	} {
		if Older(c.version, c.than) != c.want {
			t.Errorf("Older(%q, %q) is not %v", c.version, c.than, c.want)
		}
	}
	if d := Differences("2.8.0+cu128", "4.57.6"); len(d) != 7 {
		t.Errorf("2.8 and 4.57: %q", d)
	}
	if d := Differences("2.11.0", "5.17.0"); len(d) != 0 {
		t.Errorf("the predicted versions: %q", d)
	}
}
