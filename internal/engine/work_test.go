package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"memorymark/internal/evidence"
	"memorymark/internal/workbudget"
)

// poison takes hours without a budget: as many layers and passes as there
// may be, and every question at once.
const poison = `{"config": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 64,
	"num_hidden_layers": 1000, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000},
	"sequence": 64, "accumulate": 1024, "loop": "trainer", "checkpointing": true, "adapter": {"targets": "all-linear"}}`

func poisonOrder(t *testing.T) json.RawMessage {
	t.Helper()
	r := requestOn(t, "a10", poison)
	r.Changes, r.GlobalBatch = true, 1<<30
	order, err := NewOrder(r, evidence.Predicted)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPoisonedOrderFails: an order that takes too much fails by itself, and says
// why.
func TestPoisonedOrderFails(t *testing.T) {
	_, err := NewRunner(RunnerOptions{}).RunOrder(t.Context(), poisonOrder(t), func(json.RawMessage) {})
	if !errors.Is(err, workbudget.ErrTooMuch) {
		t.Errorf("%v", err)
	}
}

// TestOrderEndsWithItsContext: a prediction that is under way stops when it is
// cancelled.
func TestOrderEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := NewRunner(RunnerOptions{}).RunOrder(ctx, poisonOrder(t), func(event json.RawMessage) {
		if strings.Contains(string(event), "predicting") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
