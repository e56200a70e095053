package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"memorymark/internal/effort"
	"memorymark/internal/evidence"
	"memorymark/internal/workload"
)

// poison takes hours unless somebody counts: as many layers and passes as there
// may be, and every question at once.
const poison = `{"config": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 64,
	"num_hidden_layers": 1000, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000},
	"sequence": 64, "accumulate": 1024, "loop": "trainer", "checkpointing": true, "adapter": {"targets": "all-linear"}}`

func poisonOrder(t *testing.T) json.RawMessage {
	t.Helper()
	r := requestOf(t, "a10", poison)
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
	if !errors.Is(err, effort.ErrTooMuch) {
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

// TestTightCardsTakeLittle: on a card that the weights and the optimizer's state
// nearly fill, the largest batch is found with about as much work as elsewhere.
// Memory hardly grows with small batches there, so a line through them ends at
// batches of millions of samples, whose lengths would all be drawn.
func TestTightCardsTakeLittle(t *testing.T) {
	lengths := exampleLengths(t)
	for _, c := range []struct {
		workload string
		largest  int64
	}{
		{`{"model": "qwen3-4b", "sequence": 512, "checkpointing": true}`, 22},
		{`{"model": "phi-4-mini", "sequence": 512, "checkpointing": true}`, 19},
		{`{"model": "gpt2", "sequence": 512, "limit_gib": 2.75, "checkpointing": true}`, 3},
		{`{"model": "gpt2", "sequence": 512, "limit_gib": 2.9, "checkpointing": true}`, 4},
	} {
		r := requestOf(t, "a100-80gb", c.workload)
		r.Workload.Lengths = lengths
		r.Effort = effort.New(2*effort.OfQuestion, nil)
		p, err := newPlanner(r)
		if err != nil {
			t.Fatal(err)
		}
		largest, err := p.largest(p.run)
		t.Logf("%s: %d, after %d events", c.workload, largest, r.Effort.Spent())
		if err != nil || largest != c.largest {
			t.Errorf("%s: %d, %v; want %d", c.workload, largest, err, c.largest)
		}
	}
}

// TestTightQuestionTakesLittle asks all of such a question, with the changes that
// make the present batch fit.
func TestTightQuestionTakesLittle(t *testing.T) {
	r := requestOf(t, "a100-80gb", `{"model": "qwen3-4b", "sequence": 512, "attention_mask": "padded"}`)
	r.Workload.Lengths = exampleLengths(t)
	r.Effort = effort.New(effort.OfCommand/5, nil)
	a, err := Predict(r)
	if err != nil || a.OptimalBatch != 2 || len(a.ToFit) == 0 {
		t.Errorf("%+v, %v after %d events", a, err, r.Effort.Spent())
	}
}

func exampleLengths(t *testing.T) *workload.Lengths {
	t.Helper()
	data, err := os.ReadFile("../../examples/lengths.txt")
	if err != nil {
		t.Fatal(err)
	}
	lengths, err := workload.ReadLengths(data)
	if err != nil {
		t.Fatal(err)
	}
	return lengths
}
