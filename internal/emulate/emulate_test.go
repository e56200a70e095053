package emulate

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
	"memorymark/internal/workload/workloadtest"
)

// compiler returns a C compiler.
func compiler(t *testing.T) string {
	t.Helper()
	for _, name := range compilers() {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("NOT TESTED: it needs a C compiler")
	return ""
}

// TestABI holds abi.h to the headers that come with the tests' PyTorch.
func TestABI(t *testing.T) {
	cc, python := compiler(t), testmachine.Python(t)
	out, err := exec.Command(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for folder, major := range map[string]string{"cu13": "13", "cuda_runtime": "12"} {
		include := filepath.Join(strings.TrimSpace(string(out)), "nvidia", folder, "include")
		if _, err := os.Stat(filepath.Join(include, "driver_types.h")); err != nil {
			continue
		}
		found++
		out, err := exec.Command(cc, "-fsyntax-only", "-DCUDA_MAJOR="+major, "-I"+include, "-Ilibrary", "-Itestdata", "testdata/abi_test.c").CombinedOutput()
		if err != nil {
			t.Errorf("CUDA %s: %v\n%s", major, err, out)
		}
	}
	if found == 0 {
		t.Error("the tests' PyTorch comes without CUDA headers")
	}
}

// TestRules holds what stands in for cuDNN's answers to its answers.
func TestRules(t *testing.T) {
	cc := compiler(t)
	program := filepath.Join(t.TempDir(), "rules")
	out, err := exec.Command(cc, "-O1", "-Ilibrary", "-o", program, "testdata/rules_test.c", "library/rnn.c", "library/bn.c", "library/conv.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for rule, rows := range map[string]string{"rnn": "34800 of 34800", "dropout": "27336 of 27336", "bn": "11472 of 11472", "conv": "31663 of 31663", "products": "8828 of 9430"} {
		cmd := exec.Command(program, rule)
		cmd.Stdin = bytes.NewReader(unzip(t, filepath.Join("testdata", rule+".txt.gz")))
		out, _ := cmd.Output() // it fails if a row is missed, and counts them
		if !strings.Contains(string(out), rows) {
			t.Errorf("%s: %.2000s", rule, out)
		}
	}
}

// TestGatherByBroadcasts runs the library below a program in C.
func TestGatherByBroadcasts(t *testing.T) {
	cc, program := compiler(t), filepath.Join(t.TempDir(), "nccl")
	sources, err := filepath.Glob("library/*.c")
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{"-O2", "-std=gnu11", "-w", "-o", program, "testdata/nccl_test.c"}, sources, []string{"-ldl", "-lpthread"})
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "MEMORYMARK_EMULATE_CARD=name=test;memory=1073741824;capability=9.0;multiprocessors=132")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPlacement holds where segments are placed to 142 processes recorded on an
// H200: of two segments, which lies lower is all that PyTorch's allocator asks.
// What is wrong depends on the host's own mappings, which no rule knows.
func TestPlacement(t *testing.T) {
	cc := compiler(t)
	program := filepath.Join(t.TempDir(), "placement")
	out, err := exec.Command(cc, "-O1", "-Ilibrary", "-o", program, "testdata/placement_test.c", "library/memory.c", "library/share.c", "-lpthread").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var right, all int
	for row := range strings.Lines(string(unzip(t, "testdata/placement.txt.gz"))) {
		name, segments, _ := strings.Cut(row, " | ")
		cmd := exec.Command(program)
		if strings.Contains(segments, " H ") {
			cmd.Args = append(cmd.Args, "halves")
		}
		cmd.Stdin = strings.NewReader(segments)
		out, err := cmd.Output()
		var r, a int
		if _, scanErr := fmt.Sscan(string(out), &r, &a); err != nil || scanErr != nil {
			t.Fatalf("%s: %v, %v: %.200s", name, err, scanErr, out)
		}
		right, all = right+r, all+a
	}
	if share := float64(right) / float64(all); share < 0.89599 {
		t.Errorf("%d of %d pairs are in the driver's order, %.4f", right, all, share)
	}
}

func unzip(t *testing.T, name string) []byte {
	t.Helper()
	data := testmachine.ReadFile(t, name)
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestInstall builds the library once, and again if it was changed.
func TestInstall(t *testing.T) {
	compiler(t)
	cache := filepath.Join(t.TempDir(), "a [cache]")
	first, err := installIn(context.Background(), cache)
	if err != nil {
		t.Fatal(err)
	}
	again, err := installIn(context.Background(), cache)
	if err != nil || *again != *first {
		t.Errorf("installed again as %v, %v; it was there as %v", again, err, first)
	}
	for _, name := range []string{libraryName, "libcuda.so", "libnvidia-ml.so.1"} {
		if _, err := os.Stat(filepath.Join(first.library, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestNoCompiler is an error that says what to do.
func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "")
	_, err := installIn(context.Background(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no C compiler") {
		t.Errorf("without a compiler: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	card := workloadtest.Card(t, "h200")
	have := map[string]string{"LD_PRELOAD": "libmine.so", "CUDA_VISIBLE_DEVICES": ""}
	d := &Installation{library: "/lib", python: "/py"}
	env := d.Environment(Settings{Card: card, GPUs: 2, Steps: 3, Folder: "/f"}, func(key string) (string, bool) {
		value, ok := have[key]
		return value, ok
	})
	for _, want := range []string{
		"LD_PRELOAD=/lib/libcuda.so.1:libmine.so", "PYTHONPATH=/py", "CUDA_VISIBLE_DEVICES=0,1",
		"MEMORYMARK_EMULATE_GPUS=2", "MEMORYMARK_EMULATE_STEPS=3", "MEMORYMARK_EMULATE_FOLDER=/f",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("there is no %s in %q", want, env)
		}
	}
	described := env[slices.IndexFunc(env, func(s string) bool { return strings.HasPrefix(s, "MEMORYMARK_EMULATE_CARD=") })]
	for _, want := range []string{"name=NVIDIA H200", "memory=150109880320;", "capability=9.0;", "shared_optin=232448;", "clock_khz=1980000;"} {
		if !strings.Contains(described, want) {
			t.Errorf("the card is described as %s, without %s", described, want)
		}
	}
}
