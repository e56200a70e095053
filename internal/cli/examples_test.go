package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"memorymark/internal/testmachine"

	"go.yaml.in/yaml/v3"
)

// TestCIExamples runs what the examples for CI run: every memorymark command in
// them, in their folder, whose baseline is up to date.
func TestCIExamples(t *testing.T) {
	t.Chdir("../../examples/ci")
	commands := regexp.MustCompile(`(?m)memorymark (check [^>\n]+)`)
	ran := 0
	for _, name := range []string{"github-workflow.yml", "pre-commit-hooks.yaml"} {
		data := testmachine.ReadFile(t, name)
		var parsed map[string]any
		if err := yaml.Unmarshal(data, &parsed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, match := range commands.FindAllStringSubmatch(string(data), -1) {
			args := strings.Fields(match[1])
			if filepath.Ext(args[1]) != ".yaml" {
				continue
			}
			ran++
			var out bytes.Buffer
			if code := Run(t.Context(), args, strings.NewReader(""), &out, &out); code != 0 {
				t.Errorf("%s: memorymark %s ends with %d:\n%s", name, match[1], code, &out)
			}
		}
	}
	if ran < 2 {
		t.Errorf("%d commands were found", ran)
	}
}

// TestNotebook runs the commands of the notebook's cells, those that run a program where there is a
// Python with PyTorch.
func TestNotebook(t *testing.T) {
	data := testmachine.ReadFile(t, "../../examples/colab.ipynb")
	var notebook struct {
		Format int `json:"nbformat"`
		Cells  []struct {
			Type   string `json:"cell_type"`
			Source []string
		}
	}
	if err := json.Unmarshal(data, &notebook); err != nil || notebook.Format != 4 {
		t.Fatalf("format %d: %v", notebook.Format, err)
	}
	python := os.Getenv("MEMORYMARK_TEST_PYTHON")
	t.Chdir(t.TempDir())
	ran := 0
	for _, cell := range notebook.Cells {
		source := strings.Join(cell.Source, "")
		if program, ok := strings.CutPrefix(source, "%%writefile train.py\n"); ok {
			testmachine.WriteFile(t, "train.py", program)
		}
		for line := range strings.Lines(source) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "!memorymark ")
			if !ok || strings.HasPrefix(command, "doctor") {
				continue
			}
			if strings.Contains(command, "-- python") {
				if python == "" {
					t.Logf("NOT TESTED: %s: it needs a Python with PyTorch", command)
					continue
				}
				command = strings.Replace(command, "-- python", "-- "+python, 1)
			}
			ran++
			var out bytes.Buffer
			if code := Run(t.Context(), strings.Fields(command), strings.NewReader(""), &out, &out); !isAnswer(code) || !strings.Contains(out.String(), "RTX 4090") {
				t.Errorf("memorymark %s ends with %d:\n%s", command, code, &out)
			}
		}
	}
	if ran == 0 {
		t.Error("no command was found")
	}
}
