package emulate

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload/workloadtest"
)

// TestBranches runs programs that continue by numbers from the device.
func TestBranches(t *testing.T) {
	compiler(t)
	python := testmachine.Python(t)
	device, err := Install(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	card := workloadtest.Card(t, "h200")
	for _, test := range []struct {
		name   string
		values Values
		note   string
		code   int
		least  bytesize.Bytes
	}{
		{"matters", Computed, "", 0, 256 * bytesize.MiB}, // the loss is 0.1, so the branch is taken
		{"count", Computed, "", 0, 0},
		{"listed", Computed, "", 0, 0},
		{"accuracy", Assumed, "with others and the other branches the peaks are the same", 0, 0},
		{"logged", Assumed, "the other branches the peaks are the same", 0, 0},
		{"norm", Assumed, "", 0, 0},
		{"best", Assumed, "the other branches the peaks are the same", 0, 0},
		{"prints", Assumed, "the other branches the peaks are the same", 0, 0},
		{"types", Assumed, "plain numbers", 0, 0},
		{"file", Assumed, "", 1, 0},
		{"logarithm", Computed, "", 0, 0},
		{"solver", Computed, "", 0, 0}, // never ends with assumed values
		{"flat", Computed, "", 0, 0},
		{"solver_of_numbers", Computed, "", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			command := Command{Args: []string{python, "testdata/branches.py", test.name}, Stdout: &out, Stderr: &out}
			sum, err := device.Run(context.Background(), Settings{Card: card, Values: Auto, Folder: t.TempDir()}, command)
			if err != nil || sum.ExitCode != test.code {
				t.Fatalf("%v, %+v:\n%s", err, sum, out.String())
			}
			p := sum.Processes[0]
			if p.Values != test.values || p.Peak().Allocated < test.least || !strings.Contains(strings.Join(p.Notes, "\n"), test.note) {
				t.Errorf("%+v\n%s", p, out.String())
			}
		})
	}
}

// TestReads counts the lines that got numbers which may decide a size.
func TestReads(t *testing.T) {
	_, sum := runProgram(t, Assumed, "testdata/branches.py", "count", "integer", "listed", "copied", "drawn")
	if b := sum.Processes[0].Branches; len(b) != 5 {
		t.Errorf("%q", b)
	}
}
