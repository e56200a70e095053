//go:build !race

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

func readReadme(t *testing.T) string {
	t.Helper()
	data := testmachine.ReadFile(t, "../../README.md")
	return string(data)
}

// elsewhere are commands of the README that other tests run: they serve until
// they are stopped, need a GPU or the user's own code, or take long.
var elsewhere = []string{"serve", "snapshot view", "worker", "validate", "analyze train.py:make", "study report", "doctor", "run "}

// TestReadmeCommands runs the commands of the table of questions, in a folder with
// the files that they name.
func TestReadmeCommands(t *testing.T) {
	table := testmachine.ReadFile(t, "../../docs/guide/README.md")
	text := string(table)
	recorded := testmachine.ReadFile(t, "../../examples/gpt2_oom.pickle.xz")
	measured := testmachine.ReadFile(t, "../analysis/testdata/gpt2-h200.json")
	t.Chdir(t.TempDir())
	files := map[string][]byte{"run.json": measured, "oom.pickle": recorded, "A": recorded, "B": recorded, "config.json": []byte(`{"model_type": "gpt2", "n_layer": 2}`), "memory.yaml": []byte("workloads: [{name: ours, model: bert, max: 8GiB}]")}
	for name, data := range files {
		testmachine.WriteFile(t, name, data)
	}
	ran := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, m := range inline.FindAllStringSubmatch(line, -1) {
			args := strings.TrimPrefix(m[1], "memorymark ")
			if slices.ContainsFunc(elsewhere, func(p string) bool { return strings.HasPrefix(args, p) }) {
				continue
			}
			ran++
			var stdout, stderr bytes.Buffer
			// No is an answer too: what is recorded ran out of memory.
			if code := Run(t.Context(), strings.Fields(args), strings.NewReader(""), &stdout, &stderr); !isAnswer(code) {
				t.Errorf("%s: exit code %d: %s", m[1], code, &stderr)
			}
		}
	}
	if ran < 12 {
		t.Errorf("only %d commands were found", ran)
	}
	for _, made := range []string{"contexts.svg", "oom.html"} {
		if _, err := os.Stat(filepath.Clean(made)); err != nil {
			t.Error(err)
		}
	}
}

// TestReadmeAccuracy holds the README's figures to docs/accuracy.md, which is
// written from the recordings.
func TestReadmeAccuracy(t *testing.T) {
	figures := accuracyFigures(t)
	allocated, reserved := figures["peak allocated"], figures["peak reserved"]
	heldOutAllocated, heldOutReserved := figures["peak allocated, held out"], figures["peak reserved, held out"]
	batch, step, events := figures["largest batch"], figures["step time"], figures["every allocation and free, in order"]
	text := readReadme(t)
	for _, row := range []string{
		"| predicted: peak allocated memory | " + allocated.measured + " workloads | " + allocated.exact + " to the byte |",
		"| predicted: peak reserved memory | " + reserved.measured + " workloads | " + reserved.exact + " to the byte |",
		"| the same, measured after the models were written | " + heldOutAllocated.measured + " workloads | " + heldOutAllocated.exact + " and " + heldOutReserved.exact + " |",
		"| predicted: largest batch under a limit | " + batch.measured + " | " + batch.exact + " |",
		"| predicted: every allocation and free, in order | " + events.measured + " | " + events.exact + " |",
		"| predicted: step time | " + step.measured + " steps | | half within " + step.median + " |",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("the README lacks %s", row)
		}
	}
}

type accuracyRow struct{ measured, exact, median string }

// accuracyFigures are the rows of the table in short of docs/accuracy.md, by what
// they are about.
func accuracyFigures(t *testing.T) map[string]accuracyRow {
	t.Helper()
	data := testmachine.ReadFile(t, "../../docs/accuracy.md")
	_, table, found := strings.Cut(string(data), "## In short")
	if !found {
		t.Fatal("docs/accuracy.md has no table in short")
	}
	rows := map[string]accuracyRow{}
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "## ") {
			break
		}
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) > 3 {
			rows[strings.TrimPrefix(cells[0], "| ")] = accuracyRow{cells[1], cells[2], cells[3]}
		}
	}
	return rows
}
