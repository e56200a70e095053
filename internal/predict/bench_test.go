package predict

import (
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

func BenchmarkPredict(b *testing.B) {
	card, err := gpu.Find("h200")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, workload string }{
		{"bert", `{"config":{"model_type":"bert","architectures":["BertForSequenceClassification"]}}`},
		{"bert-32-layers", `{"config":{"model_type":"bert","architectures":["BertForSequenceClassification"],"num_hidden_layers":32}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			w, err := workload.Parse([]byte(c.workload))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Predict(w, card); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
