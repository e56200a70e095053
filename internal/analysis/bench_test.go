package analysis

import (
	"testing"

	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// BenchmarkAnalyze is what a user waits for: 50 ms on one core.
func BenchmarkAnalyze(b *testing.B) {
	for _, model := range []string{"bert", "gpt2", "resnet"} {
		b.Run(model, func(b *testing.B) {
			d := workload.Draft{}
			d.Set("model", model)
			w, err := d.Workload()
			if err != nil {
				b.Fatal(err)
			}
			card := workloadtest.Card(b, "a10")
			for b.Loop() {
				if _, err := Predict(Request{Workload: w, Card: card}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
