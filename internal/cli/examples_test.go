package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestCIExamples runs what the examples for CI run: every memorymark command in
// them, in their folder, whose baseline is up to date.
func TestCIExamples(t *testing.T) {
	t.Chdir("../../examples/ci")
	commands := regexp.MustCompile(`(?m)memorymark (check [^>\n]+)`)
	ran := 0
	for _, name := range []string{"github-workflow.yml", "pre-commit-hooks.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
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
