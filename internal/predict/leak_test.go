package predict

import (
	"strings"
	"testing"

	"memorymark/internal/trace"
	"memorymark/internal/workload/workloadtest"
)

// TestStepsLeaveNothing runs steps that differ in what they keep and checks
// that a step ends with what the one before it ended with: whatever a step
// makes for itself goes with it.
func TestStepsLeaveNothing(t *testing.T) {
	for name, data := range map[string]string{
		"llama":                 `{"config": {"model_type": "llama", LLAMA}}`,
		"llama eager":           `{"config": {"model_type": "llama", LLAMA}, "attention": "eager", "attention_mask": "padded"}`,
		"llama checkpointed":    `{"config": {"model_type": "llama", LLAMA}, "checkpointing": true}`,
		"llama amp checkpoints": `{"config": {"model_type": "llama", LLAMA}, "checkpointing": true, "precision": "amp-bf16"}`,
		"swin checkpointed":     `{"config": {"model_type": "swin", "depths": [1, 1], "num_heads": [3, 6]}, "checkpointing": true}`,
		"llama accumulated":     `{"config": {"model_type": "llama", LLAMA}, "accumulate": 3, "checkpointing": true}`,
		"llama forward":         `{"config": {"model_type": "llama", LLAMA}, "phase": "forward", "checkpointing": true}`,
		"llama inference":       `{"config": {"model_type": "llama", LLAMA}, "phase": "infer", "checkpointing": true}`,
		"llama scaled":          `{"config": {"model_type": "llama", LLAMA, "rope_scaling": {"rope_type": "llama3", "factor": 8}}}`,
		"mistral in a window":   `{"config": {"model_type": "mistral", LLAMA, "sliding_window": 64}}`,
		"mistral, wide window":  `{"config": {"model_type": "mistral", LLAMA}, "attention_mask": "ones"}`,
		"qwen2, some windows":   `{"config": {"model_type": "qwen2", LLAMA, "use_sliding_window": true, "sliding_window": 64, "max_window_layers": 1}}`,
		"qwen3":                 `{"config": {"model_type": "qwen3", LLAMA, "attention_bias": true}}`,
		"qwen3 inference":       `{"config": {"model_type": "qwen3", LLAMA}, "phase": "infer", "precision": "bf16"}`,
		"lm":                    `{"config": {"model_type": "lm", LM}}`,
		"lm in bf16":            `{"config": {"model_type": "lm", LM}, "precision": "bf16", "checkpointing": true}`,
		"lm under autocast":     `{"config": {"model_type": "lm", LM}, "precision": "amp-bf16", "checkpointing": true}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := workloadtest.Parse(t, withSizes(data))
			p := ran(t, w, h200, 3)
			if second, third := liveAt(t, p, p.stepEnds[1]), liveAt(t, p, p.stepEnds[2]); second != third {
				t.Errorf("%d bytes live after the second step, %d after the third", second, third)
			}
		})
	}
}

func withSizes(data string) string {
	return strings.NewReplacer(
		"LLAMA", `"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000`,
		"LM", `"d_model": 128, "d_ff": 256, "num_layers": 2, "num_heads": 4`,
	).Replace(data)
}

// liveAt returns the bytes that are allocated after some events, and checks
// that nothing was freed twice.
func liveAt(t *testing.T, p *program, events int) int64 {
	t.Helper()
	sizes := make(map[trace.ID]int64)
	var live int64
	for i, e := range p.requests().Events[:events] {
		switch e.Action {
		case trace.Alloc:
			sizes[e.ID] = e.Size
			live += e.Size
		case trace.FreeCompleted:
			size, ok := sizes[e.ID]
			if !ok {
				t.Fatalf("event %d frees what is not there", i)
			}
			delete(sizes, e.ID)
			live -= size
		}
	}
	return live
}
