package emulate

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload/workloadtest"
)

// runValues runs testdata/values.py on an emulated card.
func runValues(t *testing.T, v Values, args ...string) (string, *Summary) {
	t.Helper()
	return runProgram(t, v, "testdata/values.py", args...)
}

func runProgram(t *testing.T, v Values, program string, args ...string) (string, *Summary) {
	t.Helper()
	return runReading(t, v, nil, append([]string{program}, args...)...)
}

// runReading runs Python with a standard input.
func runReading(t *testing.T, v Values, stdin io.Reader, args ...string) (string, *Summary) {
	t.Helper()
	compiler(t)
	python := testmachine.Python(t)
	device, err := Install(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	card := workloadtest.Card(t, "h200")
	var out bytes.Buffer
	command := Command{Args: append([]string{python}, args...), Stdin: stdin, Stdout: &out, Stderr: &out}
	sum, err := device.Run(context.Background(), Settings{Card: card, Values: v, Folder: t.TempDir()}, command)
	if err != nil || sum.ExitCode != 0 {
		t.Fatalf("%s: %v, %+v:\n%s", v, err, sum, out.String())
	}
	return out.String(), sum
}

// TestComputedValues compares what small programs read from the device, and
// sizes that follow from it, with what PyTorch computes on the CPU.
func TestComputedValues(t *testing.T) {
	out, sum := runValues(t, Computed)
	if !strings.Contains(out, " programs, 0 differences") {
		t.Error(out)
	}
	if p := sum.Processes[0]; p.Values != Computed {
		t.Errorf("the report says that values were %s", p.Values)
	}
}

// TestTF32 multiplies numbers that TF32 has no bits for: halves of the last bit are rounded away from 0.
func TestTF32(t *testing.T) {
	out, _ := runValues(t, Computed, "tf32")
	if want := "products 2.0 0.0 -4100.0\nconvolved 2.25 0.25 -4099.75\n"; out != want {
		t.Errorf("%s, want\n%s", out, want)
	}
}

// TestComputedValuesAllocateTheSame compares every allocation and free, and
// where blocks lie, of programs whose sizes do not follow from values.
func TestComputedValuesAllocateTheSame(t *testing.T) {
	assumed, _ := runValues(t, Assumed, "events")
	computed, _ := runValues(t, Computed, "events")
	if assumed != computed {
		t.Errorf("events with assumed values %s, with computed ones %s", assumed, computed)
	}
}

// TestAutoWithoutHostMemory keeps the first run's answer if the second needs more
// host memory than there is.
func TestAutoWithoutHostMemory(t *testing.T) {
	out, sum := runProgram(t, Auto, "testdata/values.py", "huge")
	if p := sum.Processes[0]; sum.ExitCode != 0 || p.Values != Assumed || p.Peak().Allocated < 100*bytesize.GiB || !strings.Contains(strings.Join(p.Notes, "\n"), "host memory") {
		t.Errorf("%+v\n%s", sum, out)
	}
	if !strings.Contains(out, "computed values need as much host memory") {
		t.Error(out)
	}
}

func TestParseValues(t *testing.T) {
	if v, err := ParseValues("computed"); v != Computed || err != nil {
		t.Errorf("computed is %q, %v", v, err)
	}
	if _, err := ParseValues("guessed"); err == nil || !strings.Contains(err.Error(), `not "guessed"`) {
		t.Errorf("guessed: %v", err)
	}
}

// TestAutoValues computes values if assumed ones decided something, and only then.
func TestAutoValues(t *testing.T) {
	summary := func(code int, assumed ...Assumption) *Summary {
		return &Summary{GPUs: 1, ExitCode: code, Processes: []Process{{Assumed: assumed}}}
	}
	read := Assumption{Function: "item", Where: "x.py:3", Assumed: "0", Times: 1}
	branch := Assumption{Function: "__bool__", Where: "x.py:4", Assumed: "0", Times: 1, Decided: "a branch"}
	outOfMemory := summary(1, read)
	outOfMemory.Fits = new(bool)
	stopped := summary(130, read)
	stopped.Failure = &Failure{Interrupted: true}
	killed := summary(137, read)
	killed.Failure = &Failure{Signal: "SIGKILL"}
	crashed := summary(139, read)
	crashed.Failure = &Failure{Signal: "SIGSEGV"}
	for _, test := range []struct {
		name string
		sum  *Summary
		want string
	}{
		{"nothing was made up", summary(1), ""},
		{"a loss was printed", summary(0, read), ""},
		{"a branch", summary(0, read, branch), "decided a branch (__bool__ at x.py:4)"},
		{"a failure after a read", summary(1, read), "failed after it read an assumed value (item at x.py:3)"},
		{"out of memory", outOfMemory, ""},
		{"interrupted", stopped, ""},
		{"killed from outside", killed, ""},
		{"crashed after a read", crashed, "failed after it read"},
	} {
		if got := test.sum.missesValues(); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	two := summary(0, branch)
	two.Processes = append(two.Processes, Process{})
	if got := two.whyNotCompute(); !strings.Contains(got, "one process") {
		t.Errorf("two processes: %q", got)
	}
}

// TestAutoRunsAgain runs programs whose sizes follow from values.
func TestAutoRunsAgain(t *testing.T) {
	for program, kept := range map[string]string{"masked": "kept 45604\n", "rows": "kept 27\n", "labels": "kept 10073\n"} {
		out, sum := runValues(t, Auto, program)
		if !strings.Contains(out, "decided a size") || !strings.HasSuffix(out, kept) {
			t.Errorf("%s: %s", program, out)
		}
		if !strings.Contains(sum.WhyComputed, "decided a size") || sum.Processes[0].Values != Computed {
			t.Errorf("%s: %+v", program, sum)
		}
	}
}

// TestValuesOfACard compares programs whose sizes follow from values with what an
// H200 took for them (testdata/README.md).
func TestValuesOfACard(t *testing.T) {
	for _, test := range []struct {
		program             string
		allocated, reserved bytesize.Bytes
	}{
		{"value_math.py", 74456064, 75497472},
		{"hard_negatives.py", 81834496, 102760448},
		{"resume_device.py", 270659584, 281018368},
	} {
		t.Run(test.program, func(t *testing.T) {
			_, sum := runProgram(t, Auto, filepath.Join("testdata", "h200", test.program))
			if p := sum.Processes[0]; p.Peak().Allocated != test.allocated || p.Peak().Reserved != test.reserved || p.Values != Computed {
				t.Errorf("%v allocated and %v reserved with %s values; the card had %v and %v", int64(p.Peak().Allocated), int64(p.Peak().Reserved), p.Values, int64(test.allocated), int64(test.reserved))
			}
		})
	}
}

// TestSpectralOperator compares the peaks of two-dimensional transforms of a length with a large factor with a card's.
func TestSpectralOperator(t *testing.T) {
	_, sum := runProgram(t, Assumed, "testdata/h200/spectral_operator.py")
	if p := sum.Processes[0].Peak(); p.Allocated != 150104576 || p.Reserved != 184549376 {
		t.Errorf("%v allocated and %v reserved; the card had 150104576 and 184549376", int64(p.Allocated), int64(p.Reserved))
	}
}

// TestPoolOfACard compares the statistics of the driver's pool with what an H200 printed.
func TestPoolOfACard(t *testing.T) {
	want := testmachine.ReadFile(t, "testdata/h200/pool_sizes.txt")
	for _, v := range []Values{Assumed, Computed} {
		if out, _ := runProgram(t, v, "testdata/h200/pool_sizes.py"); out != string(want) {
			t.Errorf("with %s values %s, the card printed\n%s", v, out, want)
		}
	}
}

// TestRandomNumbersOfACard compares what is drawn on the device with what CUDA
// draws. After manual_seed(0) its first numbers are in many public outputs.
func TestRandomNumbersOfACard(t *testing.T) {
	out, _ := runProgram(t, Computed, "testdata/drawn.py")
	want := `rand: 0.399 0.517 0.025 0.940 0.946
randn: -0.925 -0.425 -2.644 0.145 -0.121 -0.580
normal_: -0.849 0.149 -4.288 1.290 0.758 -0.159
randn half: -0.925 -0.425 -2.645 0.145 -0.121 -0.580
rand transposed: 0.399 0.517 0.025 0.940 0.946
`
	if out != want {
		t.Errorf("%s, the card draws\n%s", out, want)
	}
}
