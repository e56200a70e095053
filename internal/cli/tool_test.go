package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A program that uvx runs finds the Python of the user, not that of its own environment.
func TestPathOfUser(t *testing.T) {
	folder := t.TempDir()
	make := func(name string) string {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	program := make("tool/bin/memorymark")
	make("tool/bin/python")
	make("tool/pyvenv.cfg")
	make("users/bin/python")
	make("plain/bin/memorymark")
	with := make("torch/bin/memorymark")
	make("torch/pyvenv.cfg")
	make("torch/lib/python3.11/site-packages/torch/__init__.py")
	at := func(name string) string { return filepath.Join(folder, name, "bin") }
	const sep = string(filepath.ListSeparator)
	for _, c := range []struct{ name, program, path, active, want string }{
		{"uvx", program, at("tool") + sep + at("users"), "", at("users")},
		{"uvx in an active environment", program, at("tool") + sep + at("users"), filepath.Join(folder, "users"), at("users")},
		{"its own environment is active", program, at("tool") + sep + at("users"), filepath.Join(folder, "tool"), at("tool") + sep + at("users")},
		{"there is no other Python", program, at("tool") + sep + at("nowhere"), "", at("tool") + sep + at("nowhere")},
		{"installed next to PyTorch", with, at("torch") + sep + at("users"), "", at("torch") + sep + at("users")},
		{"in no environment", filepath.Join(at("plain"), "memorymark"), at("plain") + sep + at("users"), "", at("plain") + sep + at("users")},
	} {
		if got := pathOfUser(c.program, c.path, c.active); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
