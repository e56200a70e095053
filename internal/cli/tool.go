package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pathOfUser is a PATH without the environment that a program is installed in, as uvx makes
// one for a tool and puts it first: its Python has no PyTorch, and hides that of the user.
// An environment that is active stays, and so does one that has PyTorch, and the only Python.
func pathOfUser(program, path, active string) string {
	folder := filepath.Dir(program)
	environment := filepath.Dir(folder)
	if !exists(filepath.Join(environment, "pyvenv.cfg")) || active != "" && sameFile(active, environment) {
		return path
	}
	if with, _ := filepath.Glob(filepath.Join(environment, "lib", "python*", "site-packages", "torch")); len(with) > 0 {
		return path
	}
	folders := filepath.SplitList(path)
	others := slices.DeleteFunc(slices.Clone(folders), func(f string) bool { return sameFile(f, folder) })
	if !slices.ContainsFunc(others, hasPython) {
		return path
	}
	return strings.Join(others, string(filepath.ListSeparator))
}

func hasPython(folder string) bool {
	for _, name := range []string{"python", "python3"} {
		if _, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
