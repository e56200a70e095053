package predict

import (
	"fmt"
	"strings"
	"testing"

	"memorymark/internal/models/modelstest"
	"memorymark/internal/workload/workloadtest"
)

// What tensor parallelism cannot split is refused with what PyTorch says, as emulated
// programs have shown; what it can is answered.
func TestUnevenTensors(t *testing.T) {
	modelstest.NeedSource(t)
	const config = `{"config": {"model_type": "%s", "hidden_size": 512, "intermediate_size": %d, "num_hidden_layers": 2, "num_attention_heads": %d,
		"num_key_value_heads": %d, "vocab_size": 2000}, "batch": 2, "parallel": {"kind": "tp", "gpus": %d}}`
	for _, c := range []struct {
		family              string
		width               int
		heads, groups, gpus int
		want                string
	}{
		{"qwen2", 1408, 8, 4, 4, ""},
		{"llama", 1407, 8, 4, 1407, "self_attn.q_proj has 8 heads, which 1407 GPUs cannot share"},
		{"qwen2", 1408, 8, 4, 8, "self_attn.k_proj has 4 heads, which 8 GPUs cannot share: PyTorch fails to view 32 columns as heads of 64"},
		{"qwen2", 1408, 8, 4, 3, "self_attn.q_proj has 8 heads, which 3 GPUs cannot share: PyTorch fails to view 171 columns as heads of 64"},
		{"qwen2", 1407, 8, 4, 2, "mlp.gate_proj has 1407 rows or columns, which 2 GPUs cannot share evenly: PyTorch fails to multiply 1408 by 1407"},
		{"gemma2", 1408, 8, 4, 4, ""},
		{"gemma2", 1408, 8, 4, 8, "self_attn.k_proj has 4 heads, which 8 GPUs cannot share: PyTorch fails to view"},
		{"qwen3", 1408, 8, 4, 4, ""}, // its norms are of one head
		{"olmo2", 1408, 8, 8, 2, "self_attn.q_proj has a norm of 512 columns behind it"},
	} {
		_, err := Predict(workloadtest.Parse(t, fmt.Sprintf(config, c.family, c.width, c.heads, c.groups, c.gpus)), workloadtest.Card(t, "h200"), Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, model := range []string{"opt-125m", "phi-3-mini", "deepseek-v2-lite"} {
		_, err := Predict(workloadtest.Parse(t, fmt.Sprintf(`{"model": "%s", "parallel": {"kind": "tp", "gpus": 2}}`, model)), workloadtest.Card(t, "h200"), Options{})
		if err == nil || !strings.Contains(err.Error(), "has others") {
			t.Errorf("%s: %v", model, err)
		}
	}
}
