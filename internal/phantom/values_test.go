package phantom

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/measure/measuretest"
)

// runValues runs testdata/values.py on an emulated card.
func runValues(t *testing.T, v Values, args ...string) (string, *Summary) {
	t.Helper()
	compiler(t)
	python := measuretest.Python(t)
	device, err := Install(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	card, err := gpu.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	command := Command{Args: append([]string{python, "testdata/values.py"}, args...), Stdout: &out, Stderr: &out}
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

// TestComputedValuesAllocateTheSame compares every allocation and free, and
// where blocks lie, of programs whose sizes do not follow from values.
func TestComputedValuesAllocateTheSame(t *testing.T) {
	assumed, _ := runValues(t, Assumed, "events")
	computed, _ := runValues(t, Computed, "events")
	if assumed != computed {
		t.Errorf("events with assumed values %s, with computed ones %s", assumed, computed)
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
