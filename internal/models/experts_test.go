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
		{model: qwen3MoE, lora: torch.LoRA{Targets: []string{"q_proj"}}, targets: []string{"q_proj"}},
		{model: qwen3MoE, lora: torch.LoRA{AllLinear: true}, parameters: all},
		{model: "mixtral", lora: torch.LoRA{AllLinear: true}, parameters: all},
		{model: "mixtral", lora: torch.LoRA{Targets: []string{"q_proj", "w2"}}, targets: []string{"q_proj"}, parameters: []string{"down_proj"}},
		{model: "deepseek_v2", lora: torch.LoRA{Targets: []string{"o_proj", "gate"}}, targets: []string{"o_proj"}, parameters: []string{"gate.weight"}},
		{model: "mixtral", lora: torch.LoRA{Targets: []string{"w1"}}, wrong: "the other half"},
		{model: qwen3MoE, lora: torch.LoRA{AllLinear: true, Dropout: 0.1}, wrong: "no dropout"},
		{model: qwen3MoE, lora: torch.LoRA{AllLinear: true, DoRA: true}, wrong: "no DoRA"},
		{model: qwen3MoE, lora: torch.LoRA{Targets: []string{"q_proj"}, Dropout: 0.1}, targets: []string{"q_proj"}},
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

// TestExpertsAreChecked wants configurations refused that PyTorch refuses, or that are
// not modelled.
func TestExpertsAreChecked(t *testing.T) {
	for config, want := range map[string]string{
		`{"model_type":"mixtral","num_local_experts":2,"num_experts_per_tok":3}`:                                    "num_experts_per_tok is 3",
		`{"model_type":"mixtral","intermediate_size":1001}`:                                                         "multiple of 8",
		`{"model_type":"mixtral","architectures":["MixtralForTokenClassification"],"output_router_logits":true}`:    "output_router_logits of MixtralForTokenClassification",
		`{"model_type":"qwen3_moe","architectures":["Qwen3MoeModel"],"output_router_logits":true}`:                  "output_router_logits of Qwen3MoeModel",
		`{"model_type":"qwen3_moe","moe_intermediate_size":7}`:                                                      "multiple of 8",
		`{"model_type":"deepseek_v2","moe_intermediate_size":1408}`:                                                 "needs num_experts_per_tok",
		`{"model_type":"deepseek_v2","num_experts_per_tok":2}`:                                                      "moe_intermediate_size is 1407",
		`{"model_type":"deepseek_v2","num_experts_per_tok":2,"topk_method":"noaux_tc"}`:                             "topk_method",
		`{"model_type":"deepseek_v2","num_experts_per_tok":2,"topk_method":"group_limited_greedy"}`:                 "n_group",
		`{"model_type":"deepseek_v2","num_experts_per_tok":2,"num_key_value_heads":8,"moe_intermediate_size":1408}`: "as many as num_attention_heads",
		`{"model_type":"deepseek_v2","num_experts_per_tok":2,"qk_rope_head_dim":33,"moe_intermediate_size":1408}`:   "need an even one",
	} {
		if err := Check(configOf(t, config), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
