package plan

import (
	"context"
	"testing"

	"memorymark/internal/workload"
)

// BenchmarkPlan is what a user waits for: eight billion parameters on every card
// in 10 s on two cores. Of the ways that are considered few are simulated.
func BenchmarkPlan(b *testing.B) {
	for _, model := range []string{"gpt2", "llama-3.1-8b"} {
		b.Run(model, func(b *testing.B) {
			d, err := workload.ParseDraft([]byte(`{"model": "` + model + `", "sequence": 1024}`))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				p, err := Make(context.Background(), Question{Draft: d, Cards: Cards()}, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(p.Considered)/float64(p.Simulated), "considered/simulated")
			}
		})
	}
}
