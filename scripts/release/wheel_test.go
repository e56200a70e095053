package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// checkWheel installs the wheel with pip into an environment of its own, and
// uses what is in it: the command, the module, the package.
func checkWheel(t *testing.T, r *release, p platform, binary, bill []byte) {
	t.Helper()
	if runtime.GOOS != p.os || runtime.GOARCH != p.arch {
		t.Skipf("pip installs no wheel for %s on %s-%s", p, runtime.GOOS, runtime.GOARCH)
	}
	r.out = t.TempDir()
	name, err := r.wheel(p, binary, bill)
	if err != nil {
		t.Fatal(err)
	}
	if want := "memorymark-1.2.3-py3-none-manylinux_2_17_x86_64.whl"; name != want {
		t.Errorf("the wheel is called %s, want %s", name, want)
	}
	file := filepath.Join(r.out, name)
	checkRecord(t, file)
	env := filepath.Join(t.TempDir(), "env")
	run(t, "python3", "-m", "venv", env)
	python := filepath.Join(env, "bin", "python")
	// Next to an environment, as uvx and pipx use it: the program is found next to the package.
	next := filepath.Join(t.TempDir(), "next")
	run(t, python, "-m", "pip", "install", "--quiet", "--no-index", "--target", next, file)
	asked := "import sys; sys.path.insert(0, sys.argv[1]); import memorymark as m; print(m._program.path(), m.predict('bert', gpu='a10'))"
	if got := run(t, python, "-c", asked, next); !strings.HasPrefix(got, next) || !strings.Contains(got, "fits a10") {
		t.Errorf("installed into a folder, it says %q", got)
	}
	run(t, python, "-m", "pip", "install", "--quiet", "--no-index", file)
	for _, use := range []struct {
		command []string
		says    string
	}{
		{[]string{filepath.Join(env, "bin", "memorymark"), "version"}, "v1.2.3"},
		{[]string{python, "-m", "memorymark", "version"}, "v1.2.3"},
		{[]string{python, "-c", "import memorymark as m; print(m.predict('bert', batch=8, gpu='a10'))"}, "fits a10: 2.09 GiB allocated"},
		{[]string{python, "-c", "import memorymark, sys; print('torch' in sys.modules)"}, "False"},
		{[]string{python, "-c", "from importlib.metadata import entry_points as e; print([p.value for p in e(group='pytest11')])"}, "memorymark.pytest_plugin"},
		{[]string{python, "-m", "pip", "show", "memorymark"}, "Version: 1.2.3"},
	} {
		if got := run(t, use.command[0], use.command[1:]...); !strings.Contains(got, use.says) {
			t.Errorf("%q says %q, want %q", use.command[1:], got, use.says)
		}
	}
}

// checkRecord compares every file of a wheel with what RECORD says of it.
func checkRecord(t *testing.T, wheel string) {
	t.Helper()
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var want strings.Builder
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/RECORD") {
			fmt.Fprintf(&want, "%s,,\n", f.Name)
			continue
		}
		data := read(t, archive, f.Name)
		sum := sha256.Sum256(data)
		fmt.Fprintf(&want, "%s,sha256=%s,%d\n", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(data))
		if executable := f.Mode()&0o111 != 0; executable != strings.HasSuffix(f.Name, "/scripts/memorymark") {
			t.Errorf("%s has mode %s", f.Name, f.Mode())
		}
	}
	info := "memorymark-1.2.3.dist-info/"
	if got := string(read(t, archive, info+"RECORD")); got != want.String() {
		t.Errorf("RECORD is\n%s\nwant\n%s", got, want.String())
	}
	if bill := read(t, archive, info+"sboms/memorymark.cdx.json"); !bytes.Contains(bill, []byte(`"bomFormat": "CycloneDX"`)) {
		t.Errorf("its bill of materials is %s", bill)
	}
	for line := range strings.Lines(string(read(t, archive, info+"METADATA"))) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "License-File: "); ok {
			read(t, archive, info+"licenses/"+name)
		}
	}
}

func read(t *testing.T, files fs.FS, name string) []byte {
	t.Helper()
	data, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return data
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

func TestChosen(t *testing.T) {
	if all, err := chosen("all"); err != nil || len(all) != len(wheelTags) {
		t.Errorf("all: %v, %v", all, err)
	}
	if one, err := chosen("linux-arm64"); err != nil || len(one) != 1 || one[0] != (platform{"linux", "arm64"}) {
		t.Errorf("linux-arm64: %v, %v", one, err)
	}
	if here, err := chosen("here"); err != nil || here[0].os != runtime.GOOS || here[0].arch != runtime.GOARCH {
		t.Errorf("here: %v, %v", here, err)
	}
	if _, err := chosen("plan9-mips"); err == nil || !strings.Contains(err.Error(), "the platforms are [linux-amd64 ") {
		t.Errorf("plan9-mips: %v", err)
	}
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
