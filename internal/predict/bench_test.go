//go:build unix

package predict

import (
	"strings"
	"testing"

	"memorymark/internal/testmachine"
	"memorymark/internal/workload/workloadtest"
)

// BenchmarkPredict is what a user waits for: BERT in 5 ms, adapters on the 4-bit
// weights of eight billion parameters in 100 ms, the largest plain language model
// in 250 ms.
func BenchmarkPredict(b *testing.B) {
	card := workloadtest.Card(b, "h200")
	const adapters = `","adapter":{"targets":"all-linear"},"quantize":"nf4-double","sequence":2048,"batch":1,"checkpointing":true,"id":"`
	for _, model := range []string{"bert", "gpt2", "resnet", "llama-3.2-1b", "t5-base", "lm-2.7b", "llama-3.1-8b" + adapters} {
		name, _, _ := strings.Cut(model, `"`)
		b.Run(name, func(b *testing.B) {
			w := workloadtest.Parse(b, `{"model":"`+model+`"}`)
			b.ReportAllocs()
			before := testmachine.ProcessorTime(b)
			for b.Loop() {
				if _, err := Predict(w, card, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((testmachine.ProcessorTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}
