package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// checkWheel installs the wheel with pip into an environment of its own, and
// uses what is in it: the command, the module, the package.
func checkWheel(t *testing.T, p platform, binary []byte) {
	t.Helper()
	if runtime.GOOS != p.os || runtime.GOARCH != p.arch {
		t.Skipf("pip installs no wheel for %s on %s-%s", p, runtime.GOOS, runtime.GOARCH)
	}
	r := *tested
	r.out = t.TempDir()
	name, err := r.wheel(p, binary)
	if err != nil {
		t.Fatal(err)
	}
	if want := "memorymark-1.2.3-py3-none-manylinux_2_17_x86_64.whl"; name != want {
		t.Errorf("the wheel is called %s, want %s", name, want)
	}
	env := filepath.Join(t.TempDir(), "env")
	run(t, "python3", "-m", "venv", env)
	python := filepath.Join(env, "bin", "python")
	run(t, python, "-m", "pip", "install", "--quiet", "--no-index", filepath.Join(r.out, name))
	for _, use := range []struct {
		command []string
		says    string
	}{
		{[]string{filepath.Join(env, "bin", "memorymark"), "version"}, "v1.2.3"},
		{[]string{python, "-m", "memorymark", "version"}, "v1.2.3"},
		{[]string{python, "-c", "import memorymark as m; print(m.predict('bert', batch=8, gpu='a10'))"}, "fits a10: 2.09 GiB allocated"},
		{[]string{python, "-c", "import memorymark, sys; print('torch' in sys.modules)"}, "False"},
		{[]string{python, "-m", "pip", "show", "memorymark"}, "Version: 1.2.3"},
	} {
		if got := run(t, use.command[0], use.command[1:]...); !strings.Contains(got, use.says) {
			t.Errorf("%q says %q, want %q", use.command[1:], got, use.says)
		}
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = append(os.Environ(), "MEMORYMARK_BINARY=", "PIP_DISABLE_PIP_VERSION_CHECK=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestPythonVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "1.2.3": "1.2.3", "v1.2.3-4-g0123abc": "1.2.3.post4+g0123abc",
		"v1.2.3-4-g0123abc-dirty": "1.2.3.post4+g0123abc", "62ed5d1": "0.0.0+62ed5d1", "(devel)": "0.0.0+devel",
	} {
		if got := pythonVersion(version); got != want {
			t.Errorf("pythonVersion(%q) = %q, want %q", version, got, want)
		}
	}
}
