package predict

import (
	"fmt"
	"testing"

	"memorymark/internal/steptime"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload/workloadtest"
)

// profiledModels are the models of steps.jsonl (internal/steptime/testdata/kernels), as
// keys of a workload. Those of llama-1b are not known.
var profiledModels = map[string]string{
	"bert": `"model": "bert", "sequence": 128`, "bert-mlm-512": `"model": "bert-mlm", "sequence": 512`, "gpt2-512": `"model": "gpt2", "sequence": 512`,
	"gpt2-medium-1024": `"model": "gpt2-medium", "sequence": 1024`, "qwen2-0.5b-512": `"model": "qwen2-0.5b", "sequence": 512`, "vit-base": `"model": "vit"`,
	"vit-small": `"config": {"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6, "intermediate_size": 1536}`,
	"resnet18":  `"model": "resnet-18"`, "resnet50": `"model": "resnet"`, "resnet101": `"model": "resnet-101"`, "convnext-tiny": `"model": "convnext-tiny"`, "swin-tiny": `"model": "swin-tiny"`,
	"whisper-tiny": `"model": "whisper-tiny", "sequence": 64`,
	"llama-8b-2layers-2048": `"sequence": 2048, "config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
		"num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}`,
}

// profiledSteps is how far off steps on an H200 are that were timed with their kernels,
// in another process and on another day than those of throughput.jsonl.
func profiledSteps(t *testing.T) (out lineErrors) {
	t.Helper()
	for _, step := range tracetest.Lines[struct {
		Model, Precision string
		Batch            int64
		Seconds          float64
	}](t, "../steptime/testdata/kernels/steps.jsonl.xz") {
		model := profiledModels[step.Model]
		if model == "" {
			continue
		}
		w := workloadtest.Parse(t, fmt.Sprintf(`{%s, "batch": %d, "precision": %q}`, model, step.Batch, step.Precision))
		s := mustRun(t, w, workloadtest.Card(t, "h200"))
		out = append(out, s.timed(fmt.Sprintf("%s_b%d_%s", step.Model, step.Batch, step.Precision), step.Seconds))
	}
	return out
}

// emulatedSteps is how far off steps are whose launches the emulated engine counted.
func emulatedSteps(t *testing.T) (own, plain lineErrors) {
	t.Helper()
	for _, step := range tracetest.Lines[struct {
		ID, Source string
		Seconds    float64 `json:"seconds_per_step"`
		Work       steptime.Work
	}](t, "../steptime/testdata/timed.jsonl.xz") {
		e := timed(step.ID, Seconds{Computing: step.Work.Seconds(workloadtest.Card(t, "h200")), Range: step.Work.Range(workloadtest.Card(t, "h200"))}, step.Seconds)
		if step.Source == "own" {
			own = append(own, e)
		} else {
			plain = append(plain, e)
		}
	}
	return own, plain
}

// TestProfiledSteps holds what the card takes to what it was found to take.
func TestProfiledSteps(t *testing.T) {
	e := profiledSteps(t)
	t.Logf("%d steps: %+v, %.2f in their range", len(e), e.sum(), e.held())
	if len(e) != 25 || e.sum().Median > 0.15 || e.held() < 0.8 {
		t.Errorf("farthest are %s; it was better", e.farthest())
	}
}
