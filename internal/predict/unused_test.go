package predict

import (
	"strings"
	"testing"

	"memorymark/internal/workload/workloadtest"
)

// TestUnusedParameters: DDP stops where the loss does not depend on a parameter, unless
// it was told of such, or is not there.
func TestUnusedParameters(t *testing.T) {
	const pooler = `{"model": "bert", "batch": 2, "config": {"num_hidden_layers": 1, "architectures": ["BertModel"]}, `
	const maskToken = `{"model": "dinov2-small", "batch": 2, "config": {"num_hidden_layers": 1}, `
	for text, stops := range map[string]bool{
		pooler + `"parallel": {"kind": "ddp", "gpus": 2}}`:                                                     true,
		pooler + `"parallel": {"kind": "zero1", "gpus": 2}, "accumulate": 2}`:                                  true,
		pooler + `"parallel": {"kind": "ddp", "gpus": 2, "static_graph": true}}`:                               false,
		pooler + `"parallel": {"kind": "fsdp", "gpus": 2}}`:                                                    false,
		maskToken + `"parallel": {"kind": "ddp", "gpus": 2}}`:                                                  true,
		maskToken + `"parallel": {"kind": "ddp", "gpus": 2}, "loop": "accelerate"}`:                            true,
		maskToken + `"parallel": {"kind": "ddp", "gpus": 2}, "loop": "trainer"}`:                               false,
		maskToken + `"parallel": {"kind": "ddp", "gpus": 2}, "adapter": {"rank": 2, "targets": "all-linear"}}`: false,
	} {
		_, err := Predict(workloadtest.Parse(t, text), workloadtest.Card(t, "h200"), Options{})
		if stopped := err != nil && strings.Contains(err.Error(), "does not depend on"); stopped != stops || err != nil && !stopped {
			t.Errorf("%s: %v", text, err)
		}
	}
}
