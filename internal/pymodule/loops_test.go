package pymodule_test

import (
	"fmt"
	"testing"

	"memorymark/internal/models"
	"memorymark/internal/predict"
	"memorymark/internal/workload/workloadtest"
)

// TestLoops compares models that are evaluated with those written by hand in the loops
// of libraries, which build them on the CPU, and under DDP.
func TestLoops(t *testing.T) {
	l := library(t)
	for _, model := range []string{
		`"model_type": "gpt2", "n_layer": 2`, `"model_type": "bert", "num_hidden_layers": 2`, `"model_type": "t5", "num_layers": 2`,
		`"model_type": "bert", "num_hidden_layers": 2, "architectures": ["BertForMaskedLM"]`,
		`"model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000`,
	} {
		for _, loop := range []string{
			`"loop": "trainer"`, `"loop": "trainer", "precision": "amp-fp16"`, `"loop": "accelerate", "precision": "amp-bf16"`, `"loop": "lightning"`,
			`"accumulate": 3, "clip_grad_norm": true`, `"parallel": {"kind": "ddp", "gpus": 8}`,
		} {
			t.Run(model+loop, func(t *testing.T) {
				w := workloadtest.Parse(t, fmt.Sprintf(`{"config": {%s}, "batch": 2, "sequence": 64, %s}`, model, loop))
				evaluated, err := predict.Run(w, h200, predict.Options{Steps: 2, Build: l.New})
				if err != nil {
					t.Fatal(err)
				}
				byHand, err := predict.Run(w, h200, predict.Options{Steps: 2, Build: models.New})
				if err != nil {
					t.Fatal(err)
				}
				same(t, events(evaluated.Requests()), events(byHand.Requests()))
			})
		}
	}
}
