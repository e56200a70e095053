package models

import (
	"slices"
	"strings"
	"testing"

	"memorymark/internal/torch"
)

// TestAdaptExperts holds the targets of adapters to what PEFT 0.21 makes of them
// with transformers 5 (get_peft_model on small models).
func TestAdaptExperts(t *testing.T) {
	all := []string{"down_proj", "gate.weight", "gate_up_proj"}
	for _, c := range []struct {
		model               string
		lora                torch.LoRA
		targets, parameters []string
		wrong               string
	}{
		{model: "llama", lora: torch.LoRA{Targets: []string{"gate_proj"}}, targets: []string{"gate_proj"}},
		{model: "qwen3_moe", lora: torch.LoRA{Targets: []string{"q_proj"}}, targets: []string{"q_proj"}},
		{model: "qwen3_moe", lora: torch.LoRA{AllLinear: true}, parameters: all},
		{model: "mixtral", lora: torch.LoRA{AllLinear: true}, parameters: all},
		{model: "mixtral", lora: torch.LoRA{Targets: []string{"q_proj", "w2"}}, targets: []string{"q_proj"}, parameters: []string{"down_proj"}},
		{model: "deepseek_v2", lora: torch.LoRA{Targets: []string{"o_proj", "gate"}}, targets: []string{"o_proj"}, parameters: []string{"gate.weight"}},
		{model: "mixtral", lora: torch.LoRA{Targets: []string{"w1"}}, wrong: "the other half"},
		{model: "qwen3_moe", lora: torch.LoRA{AllLinear: true, Dropout: 0.1}, wrong: "no dropout"},
		{model: "qwen3_moe", lora: torch.LoRA{AllLinear: true, DoRA: true}, wrong: "no DoRA"},
		{model: "qwen3_moe", lora: torch.LoRA{Targets: []string{"q_proj"}, Dropout: 0.1}, targets: []string{"q_proj"}},
	} {
		err := adaptExperts(&c.lora, c.model)
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s, %v: %v", c.model, c.lora.Targets, err)
			}
		case err != nil:
			t.Error(err)
		default:
			slices.Sort(c.lora.Parameters)
			if !slices.Equal(c.lora.Targets, c.targets) || !slices.Equal(c.lora.Parameters, c.parameters) {
				t.Errorf("%s: layers %v and parameters %v, want %v and %v", c.model, c.lora.Targets, c.lora.Parameters, c.targets, c.parameters)
			}
		}
	}
}
