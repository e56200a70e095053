// Package testmachine gives tests what they need of the machine: files, a Python with
// PyTorch, a disk, and the time that the processor took.
package testmachine

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// Python returns an interpreter with PyTorch and transformers. `make test` sets
// one up and names it in $MEMORYMARK_TEST_PYTHON; that it works is for the test
// to find out. Without the variable, the test is skipped as not tested.
func Python(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("MEMORYMARK_TEST_PYTHON")
	if path == "" {
		tb.Skip("NOT TESTED: it needs a Python with PyTorch and transformers. " +
			"Run make unit, or name one in MEMORYMARK_TEST_PYTHON.")
	}
	return path
}

//go:embed fork.py
var forkServer []byte

// ForkingPython is Python, but that probers are forked from a process that has imported
// PyTorch, once for all tests of a package: an import takes seconds. A prober is no
// descendant of the process that started it then, but of its group.
func ForkingPython(tb testing.TB) string {
	tb.Helper()
	python := Python(tb)
	if runtime.GOOS != "linux" {
		return python
	}
	path, err := forking()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// forking writes what forks into a folder, which the server removes when this process ends.
var forking = sync.OnceValues(func() (python string, err error) {
	folder, err := os.MkdirTemp("", "memorymark-fork-")
	if err != nil {
		return "", err
	}
	python = filepath.Join(folder, "python")
	script := fmt.Sprintf(`#!/bin/sh
case "$1 $2 $3" in
"-u -c "*memorymark_prober*) exec '%[1]s' -ISB '%[2]s/fork.py' '%[2]s' %[3]d "$@" ;;
*) exec '%[1]s' "$@" ;;
esac
`, os.Getenv("MEMORYMARK_TEST_PYTHON"), folder, os.Getpid())
	return python, errors.Join(os.WriteFile(filepath.Join(folder, "fork.py"), forkServer, 0o600), os.WriteFile(python, []byte(script), 0o700))
})
