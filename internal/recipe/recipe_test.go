package recipe_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"memorymark/internal/recipe"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
)

// written is the workload of some keys as its program has it.
func written(t *testing.T, keys string) *workload.Workload {
	t.Helper()
	var d workload.Draft
	if err := json.Unmarshal([]byte(`{`+keys+`}`), &d); err != nil {
		t.Fatalf("%s: %v", keys, err)
	}
	w, err := recipe.AsWritten(d).Workload()
	if err != nil {
		t.Fatalf("%s: %v", keys, err)
	}
	return w
}

// Python takes every program: those of all kinds, and of all models of the catalog.
func TestPythonReadsPrograms(t *testing.T) {
	python := testmachine.Python(t)
	programs := make(map[string]string)
	add := func(id, keys string) {
		if r := recipe.New(written(t, keys)); r != nil {
			programs[id] = r.Program
		}
	}
	for _, kinds := range []map[string]string{kinds, ranks} {
		for id, keys := range kinds {
			add(id, keys)
		}
	}
	for _, m := range workload.Models() {
		add(m.ID, `"model": "`+m.ID+`", "precision": "amp-fp16", "checkpointing": true, "clip_grad_norm": true`)
	}
	for _, rest := range []string{
		`"loop": "plain", "phase": "train", "attention": "eager", "expandable_segments": true`,
		`"optimizer": "paged-adamw-8bit", "quantize": "int8", "adapter": {"rank": 8, "modules_to_save": ["lm_head"]}`,
		`"loop": "trainer", "optimizer": "adafactor", "accumulate": 8, "precision": "amp-fp16"`,
		`"loop": "lightning", "accumulate": 8, "precision": "amp-fp16", "clip_grad_norm": true`,
		`"parallel": {"kind": "ddp", "gpus": 8, "static_graph": true, "gradient_as_bucket_view": true}`,
		`"parallel": {"kind": "fsdp", "gpus": 16, "mixed_precision": "bf16", "reshard_after_forward": false, "offload": true}`,
	} {
		add(rest, `"model": "llama-3.1-8b", `+rest)
	}
	in, err := json.Marshal(programs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/read.py")
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	for line := range strings.Lines(string(out)) {
		if module, absent := strings.CutPrefix(line, "absent "); absent {
			t.Logf("NOT TESTED: what is of %s, which is not installed", strings.TrimSpace(module))
		} else {
			t.Error(strings.TrimSpace(line))
		}
	}
}

// What libraries do not have, or a program does not show, has no recipe.
func TestNoRecipe(t *testing.T) {
	for _, keys := range []string{
		`"model": "lm-small"`,
		`"model": "gpt2", "phase": "infer"`,
		`"model": "gpt2", "lengths": [10, 20, 30]`,
		`"model": "gpt2", "loop": "trainer", "parallel": {"kind": "ddp", "gpus": 2}`,
		`"model": "gpt2", "loop": "trainer", "optimizer": "none"`,
		`"model": "gpt2", "loop": "lightning", "optimizer": "none"`,
		`"model": "llama-3.2-1b", "parallel": {"kind": "pipeline", "gpus": 2, "stages": [8, 8]}`,
	} {
		if r := recipe.New(written(t, keys)); r != nil {
			t.Errorf("%s:\n%s", keys, r.Program)
		}
	}
}

// Without an optimizer nothing of it is used, and no gradients are clipped for it.
func TestWithoutOptimizer(t *testing.T) {
	w := written(t, `"model": "gpt2", "precision": "amp-fp16", "optimizer": "none", "clip_grad_norm": true`)
	program := recipe.New(w).Program
	for _, bad := range []string{"optimizer", "clip_grad_norm_"} {
		if strings.Contains(program, bad) {
			t.Errorf("%s is in\n%s", bad, program)
		}
	}
}

// What names files, code or types in a configuration is in no program.
func TestConfigurationNamesNoCode(t *testing.T) {
	w := written(t, `"config": {"model_type": "gpt2", "n_layer": 2, "auto_map": {"AutoModel": "evil.py"}, "_name_or_path": "evil", "torch_dtype": "float16"}`)
	program := recipe.New(w).Program
	for _, bad := range []string{"auto_map", "evil", "float16"} {
		if strings.Contains(program, bad) {
			t.Errorf("%q is in\n%s", bad, program)
		}
	}
	if !strings.Contains(program, "n_layer=2") {
		t.Errorf("n_layer is missing in\n%s", program)
	}
}

// How a program is launched, and which loop it has.
func TestLaunch(t *testing.T) {
	for keys, want := range map[string]string{
		`"model": "gpt2"`: "python train.py",
		`"model": "gpt2", "expandable_segments": true`:              "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py",
		`"model": "gpt2", "parallel": {"kind": "ddp", "gpus": 4}`:   "torchrun --standalone --nproc-per-node 4 train.py",
		`"model": "gpt2", "parallel": {"kind": "fsdp", "gpus": 16}`: "torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint $HOST:29500 train.py",
	} {
		if got := recipe.New(written(t, keys)).Launch; got != want {
			t.Errorf("%s: %s, want %s", keys, got, want)
		}
	}
	given := workload.Draft{"loop": json.RawMessage(`"trainer"`)}
	if !maps.EqualFunc(recipe.AsWritten(given), given, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		t.Errorf("a loop that was given is %s", recipe.AsWritten(given)["loop"])
	}
}
