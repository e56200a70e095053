package predict

import (
	"errors"
	"testing"

	"memorymark/internal/search"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload/workloadtest"
)

// deep is a model of as many layers as a question may have, with as many passes.
const deep = `{"config": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 64,
	"num_hidden_layers": 1000, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000}, "sequence": 64, "accumulate": 1024}`

func deepRunner(t *testing.T, e *workbudget.Budget) *Batches {
	t.Helper()
	w := workloadtest.Parse(t, deep)
	card := workloadtest.Card(t, "a10")
	return NewBatches(w, card, e)
}

// TestManyPassesAreCheap: a step of 1,024 passes takes no more than one of a few.
func TestManyPassesAreCheap(t *testing.T) {
	s, err := deepRunner(t, workbudget.New(workbudget.PerQuestion/3, nil)).Process(1)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.program.events(); n > 4<<20 {
		t.Errorf("it holds %d events", n)
	}
	if _, err := s.Trace(); err == nil {
		t.Error("a recording of all passes was made")
	}
}

// TestWorkEnds: what is simulated, played or searched ends with the work, in
// whatever part of it that is, and with its reason.
func TestWorkEnds(t *testing.T) {
	for _, events := range []int64{0, 10_000, 300_000, 2_000_000} {
		_, err := deepRunner(t, workbudget.New(events, nil)).Process(1)
		if !errors.Is(err, workbudget.ErrTooMuch) {
			t.Errorf("%d events: %v", events, err)
		}
	}
	left := errors.New("the client left")
	for _, after := range []int{0, 100, 5_000} {
		asked := 0
		e := workbudget.New(1<<40, func() error {
			if asked++; asked > after {
				return left
			}
			return nil
		})
		if _, err := deepRunner(t, e).Largest(search.Options{}); !errors.Is(err, left) {
			t.Errorf("left after %d looks: %v", after, err)
		}
		if asked > after+1 {
			t.Errorf("left after %d looks, and asked %d times", after, asked)
		}
	}
}
