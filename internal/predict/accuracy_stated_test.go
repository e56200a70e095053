package predict

import (
	"strings"
	"testing"

	"memorymark/internal/workload/workloadtest"
)

// What is stated names its evidence, and says in what a question goes beyond
// it.
func TestStatedNamesItsEvidence(t *testing.T) {
	for _, c := range []struct {
		workload, card string
		want, not      []string
	}{
		{`{"model":"llama-3.1-8b"}`, "a100-80gb", []string{
			"NVIDIA H200", "PyTorch 2.11 and transformers 5.17", "LlamaForCausalLM, up to 1.2 billion parameters",
			"Accuracy with 8.0 billion parameters on an NVIDIA A100", "largest batch has not been measured", "No steps",
		}, nil},
		{`{"model":"bert"}`, "h200", []string{"largest batches of BertForSequenceClassification, up to 109 million", "timed steps of such models"}, []string{"not been measured"}},
		{`{"model":"bert-large"}`, "h200", []string{"Accuracy with 335 million parameters has not been measured"}, nil},
		{`{"model":"bert"}`, "t4", []string{"Accuracy on an NVIDIA Tesla T4 has not been measured"}, nil},
		{`{"model":"gpt2","adapter":16,"parallel":{"kind":"ddp","gpus":2}}`, "h200", []string{"Accuracy with adapters has not been measured"}, nil},
		{`{"model":"qwen3-0.6b"}`, "h200", []string{"Accuracy for Qwen3ForCausalLM is unknown"}, []string{"exact", "within"}},
	} {
		s := mustRun(t, workloadtest.Parse(t, c.workload), workloadtest.Card(t, c.card))
		said := strings.Join(StatedOf(s.program.w, s.Parameters(), s.card).OfBatches(), " ")
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s on %s: nothing says %q: %s", c.workload, c.card, want, said)
			}
		}
		for _, not := range c.not {
			if strings.Contains(said, not) {
				t.Errorf("%s on %s: says %q: %s", c.workload, c.card, not, said)
			}
		}
	}
}
