package plan

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"memorymark/internal/measure/measuretest"
	"memorymark/internal/workload"
)

// recipesOf are those of a workload of every kind.
func recipesOf(t *testing.T) map[string]Recipe {
	t.Helper()
	out := make(map[string]Recipe)
	for _, keys := range []string{
		`"precision": "amp-bf16", "checkpointing": true, "optimizer": "adamw-8bit"`,
		`"precision": "amp-fp16"`,
		`"precision": "tf32", "optimizer_impl": "fused"`,
		`"precision": "bf16", "adapter": {"kind": "lora", "rank": 8, "targets": ["q_proj", "v_proj"]}`,
		`"adapter": 16, "quantize": "nf4-double"`,
		`"adapter": 16, "quantize": "int8"`,
		`"parallel": {"kind": "ddp", "gpus": 8}`,
		`"adapter": 16, "quantize": "int8", "parallel": {"kind": "ddp", "gpus": 8}`,
		`"optimizer": "muon", "optimizer_impl": "fused", "parallel": {"kind": "ddp", "gpus": 8}`,
		`"parallel": {"kind": "zero1", "gpus": 16}`,
		`"parallel": {"kind": "fsdp", "gpus": 16, "mixed_precision": "bf16", "reshard_after_forward": false, "offload": true}`,
		`"parallel": {"kind": "hsdp", "gpus": 16, "shard": 8, "mixed_precision": "bf16"}`,
		`"parallel": {"kind": "tp", "gpus": 8}`,
		`"parallel": {"kind": "fsdp+tp", "gpus": 16, "tensor": 8}`,
	} {
		w, err := workload.Parse([]byte(`{"model": "llama-3.2-1b", "batch": 2, "accumulate": 4, ` + keys + `}`))
		if err != nil {
			t.Fatal(err)
		}
		out[keys] = newRecipe(w)
	}
	return out
}

// What is to be pasted is what Python, transformers and Accelerate take.
func TestRecipesAreTaken(t *testing.T) {
	python := measuretest.Python(t)
	type one struct {
		Recipe Recipe `json:"recipe"`
		GPUs   int64  `json:"gpus"`
	}
	var all []one
	for keys, r := range recipesOf(t) {
		gpus := int64(1)
		if _, after, ok := strings.Cut(keys, `"gpus": `); ok {
			gpus = map[bool]int64{true: 8, false: 16}[strings.HasPrefix(after, "8")]
		}
		all = append(all, one{r, gpus})
	}
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/recipes.py")
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
}

// A recipe says what the workload says.
func TestRecipes(t *testing.T) {
	for keys, want := range map[string][]string{
		"tf32":               {`optim="adamw_torch_fused"`, "tf32=True", "gradient_accumulation_steps=4"},
		"8bit":               {`optim="adamw_bnb_8bit"`, "bf16=True", "gradient_checkpointing=True", "mixed_precision: bf16"},
		"nf4":                {`bnb_4bit_use_double_quant=True`, "prepare_model_for_kbit_training", "LoraConfig(r=16))"},
		"q_proj":             {`target_modules=["q_proj", "v_proj"]`, "r=8", "dtype=torch.bfloat16"},
		"zero1":              {"ZeroRedundancyOptimizer", "--nnodes 2"},
		`"int8", "parallel"`: {`device_map={"": local_rank}`, "DistributedDataParallel"},
		"hsdp":               {`mesh_dim_names=("replicate", "shard")`, "dp_replicate_size: 2", "dp_shard_size: 8"},
		"offload":            {"CPUOffloadPolicy()", "reshard_after_forward=False", "fsdp_offload_params: true"},
		"muon":               {"torch.optim.Muon(matrices)", "torch.optim.AdamW(others, fused=True)", "DistributedDataParallel"},
		"fsdp+tp":            {"ColwiseParallel()", `mesh["dp"]`, "tp_size: 8"},
	} {
		for given, r := range recipesOf(t) {
			if !strings.Contains(given, keys) {
				continue
			}
			all := r.Launch + r.Model + r.TrainingArguments + r.Accelerate + r.PyTorch
			for _, w := range want {
				if !strings.Contains(all, w) {
					t.Errorf("%s: %s is missing:\n%s", given, w, all)
				}
			}
		}
	}
}
