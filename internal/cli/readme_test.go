package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func readReadme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// elsewhere are commands of the README that other tests run: they serve until
// they are stopped, want a GPU or code of one's own, or take long.
var elsewhere = []string{"serve", "snapshot view", "worker", "validate", "analyze train.py:make", "report", "doctor", "run "}

// TestReadmeCommands runs the commands of the README's table, in a folder with
// the files that they name.
func TestReadmeCommands(t *testing.T) {
	text := readReadme(t)
	recorded, err := os.ReadFile("../../examples/gpt2_oom.pickle.xz")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	files := map[string][]byte{"oom.pickle": recorded, "A": recorded, "B": recorded, "config.json": []byte(`{"model_type": "gpt2", "n_layer": 2}`), "memory.yaml": []byte("workloads: [{name: ours, model: bert, max: 8GiB}]")}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
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
			if code := Run(t.Context(), strings.Fields(args), strings.NewReader(""), &stdout, &stderr); code > exitNo {
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
