package predict

import (
	"strings"
	"testing"
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
			"8.0 billion parameters, and the card is an NVIDIA A100", "No largest batch", "No step",
		}, nil},
		{`{"model":"bert"}`, "h200", []string{"largest batches of BertForSequenceClassification, up to 109 million", "steps of such models timed"}, []string{"not measured"}},
		{`{"model":"bert-large"}`, "h200", []string{"This model has 335 million parameters: how far off that is was not measured"}, nil},
		{`{"model":"bert"}`, "t4", []string{"The card here is an NVIDIA Tesla T4"}, nil},
		{`{"model":"qwen3-0.6b"}`, "h200", []string{"No Qwen3ForCausalLM was measured"}, []string{"exact", "within"}},
	} {
		s, err := Simulate(parsed(t, c.workload), cardOf(t, c.card))
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(s.Stated().OfBatches(), " ")
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
