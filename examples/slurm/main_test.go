package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

func script(gpu, workload string) string {
	return "#!/bin/bash\n#SBATCH --job-name=tune --gres=gpu:" + gpu + ":1\n#MEMORYMARK " + workload + "\nsrun python train.py\n"
}

func TestCheck(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct{ script, refused string }{
		{script("a100-80gb", `{"model": "gpt2", "batch": 16}`), ""},
		{script("t4", `{"model": "gpt2", "batch": 256}`), "it would fit with batch 32 accumulated 8 times"},
		{script("t4", `{"model": "llama-3.1-8b"}`), "the job cannot fit"},
		{script("t4", `{"model": "gpt9"}`), `model "gpt9" is not in the catalog`},
		{script("our-own-name", `{"model": "llama-3.1-8b"}`), ""},
		{"#!/bin/bash\n#SBATCH --gres=gpu:t4:1\nsrun hostname\n", ""},
	} {
		err := check(ctx, strings.NewReader(c.script))
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s\n%v, want %q", c.script, err, c.refused)
		}
	}
}

// The wrapper hands on to sbatch what fits, and nothing else.
func TestWrapper(t *testing.T) {
	folder := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "memorymark-filter"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wrapper := testmachine.ReadFile(t, "sbatch")
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sbatch := write("sbatch", string(wrapper))
	slurms := write("slurms-sbatch", "#!/bin/sh\necho Submitted \"$@\"\n")
	for workload, want := range map[string]string{
		`{"model": "gpt2", "batch": 4}`:   "Submitted --parsable ",
		`{"model": "gpt2", "batch": 256}`: "memorymark: the job cannot fit",
	} {
		cmd := exec.Command(sbatch, "--parsable", write("job.sh", script("t4", workload)))
		cmd.Env = append(os.Environ(), "SBATCH="+slurms)
		if out, _ := cmd.CombinedOutput(); !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %s", workload, out)
		}
	}
}
