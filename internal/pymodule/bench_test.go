package pymodule_test

import (
	"testing"

	"memorymark/internal/predict"
	"memorymark/internal/workload/workloadtest"
)

// BenchmarkSteps builds a model and runs two steps of it, evaluated and by hand.
func BenchmarkSteps(b *testing.B) {
	l := library(b)
	for name, data := range map[string]string{
		"gpt2": `{"config": {"model_type": "gpt2"}, "batch": 4, "sequence": 256}`,
		"qwen3": `{"config": {"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
			"num_attention_heads": 16, "num_key_value_heads": 8, "tie_word_embeddings": true}, "batch": 2, "sequence": 512, "precision": "bf16"}`,
		"t5": `{"config": {"model_type": "t5"}, "batch": 4, "sequence": 128}`,
	} {
		w := workloadtest.Parse(b, data)
		b.Run(name+"/evaluated", func(b *testing.B) {
			for b.Loop() {
				if _, err := predict.Run(w, h200, predict.Options{Steps: 2, Build: l.New}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/by_hand", func(b *testing.B) {
			for b.Loop() {
				if _, err := predict.Run(w, h200, predict.Options{Steps: 2}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
