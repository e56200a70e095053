package deploy_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/testmachine"

	"go.yaml.in/yaml/v3"
)

// action is what of action.yml its steps depend on.
type action struct {
	Name, Description string
	Inputs            map[string]struct{ Description, Default string }
	Runs              struct {
		Using string
		Steps []struct {
			Name, Shell, Run string
			Env              map[string]string
		}
	}
}

// TestAction runs the steps of the GitHub Action as a runner does, on the example: what fits passes,
// what is over its budget fails, and both write what they were asked for.
func TestAction(t *testing.T) {
	for _, program := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TESTED: there is no %s", program)
		}
	}
	var a action
	if err := yaml.Unmarshal([]byte(read(t, "../action.yml")), &a); err != nil {
		t.Fatal(err)
	}
	if a.Name == "" || a.Description == "" || a.Runs.Using != "composite" || len(a.Runs.Steps) != 2 {
		t.Fatalf("%+v", a)
	}
	binary := filepath.Join(t.TempDir(), "memorymark")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/memorymark").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wheel := wheelOf(t, binary)
	for name, c := range map[string]struct {
		budget, said string
		passes       bool
	}{
		"within": {"10GiB", "2 workloads within budget", true},
		"over":   {"1GiB", "1 of 2 workloads over budget", false},
	} {
		t.Run(name, func(t *testing.T) {
			folder, temp := t.TempDir(), t.TempDir()
			for _, file := range []string{"memory.yaml", "memory.baseline.json"} {
				text := strings.Replace(read(t, "../examples/ci/"+file), "max: 10GiB", "max: "+c.budget, 1)
				testmachine.WriteFile(t, filepath.Join(folder, file), text)
			}
			summary := filepath.Join(temp, "summary.md")
			given := map[string]string{"package": wheel, "sarif": "memory.sarif"}
			for i, step := range a.Runs.Steps {
				command := exec.CommandContext(t.Context(), step.Shell, "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
				command.Dir, command.Env = folder, append(os.Environ(), "RUNNER_TEMP="+temp, "GITHUB_STEP_SUMMARY="+summary)
				for key, value := range step.Env {
					input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
					asked, known := a.Inputs[input]
					if !known {
						t.Fatalf("%s is %s, which is no input", key, value)
					}
					if text, ok := given[input]; ok {
						asked.Default = text
					}
					command.Env = append(command.Env, key+"="+asked.Default)
				}
				out, err := command.CombinedOutput()
				if want := c.passes || i == 0; (err == nil) != want {
					t.Fatalf("%s: %v: %s", step.Name, err, out)
				}
			}
			if text := read(t, summary); !strings.Contains(text, c.said) {
				t.Errorf("the summary does not say %q: %s", c.said, text)
			}
			var sarif struct{ Version string }
			if err := json.Unmarshal([]byte(read(t, filepath.Join(folder, "memory.sarif"))), &sarif); err != nil || sarif.Version != "2.1.0" {
				t.Errorf("SARIF %q: %v", sarif.Version, err)
			}
		})
	}
}

// wheelOf makes a wheel as pip installs it, whose program is that one.
func wheelOf(t *testing.T, binary string) string {
	t.Helper()
	files := [][2]string{
		{"memorymark-0.0.1.data/scripts/memorymark", "#!/bin/sh\nexec '" + binary + "' \"$@\"\n"},
		{"memorymark-0.0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: memorymark\nVersion: 0.0.1\n"},
		{"memorymark-0.0.1.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	record := "memorymark-0.0.1.dist-info/RECORD,,\n"
	for _, f := range files {
		record += f[0] + ",,\n"
	}
	name := filepath.Join(t.TempDir(), "memorymark-0.0.1-py3-none-any.whl")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	for _, f := range slices.Concat(files, [][2]string{{"memorymark-0.0.1.dist-info/RECORD", record}}) {
		header := &zip.FileHeader{Name: f[0]}
		header.SetMode(0o755)
		w, err := archive.CreateHeader(header)
		if err == nil {
			_, err = fmt.Fprint(w, f[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}
