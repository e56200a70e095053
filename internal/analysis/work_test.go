//go:build !race

package analysis

import (
	"slices"
	"strings"
	"testing"

	"memorymark/internal/predict"
	"memorymark/internal/testmachine"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// poison takes hours without a budget: as many layers and passes as there
// may be, and every question at once.
const poison = `{"config": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 64,
	"num_hidden_layers": 1000, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000},
	"sequence": 64, "accumulate": 1024, "loop": "trainer", "checkpointing": true, "adapter": {"targets": "all-linear"}}`

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
		r.Work = workbudget.New(2*workbudget.PerQuestion, nil)
		p, err := newPlanner(r)
		if err != nil {
			t.Fatal(err)
		}
		largest, err := p.largest(p.run)
		t.Logf("%s: %d, after %d events", c.workload, largest, r.Work.Spent())
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
	r.Work = workbudget.New(workbudget.PerCommand/5, nil)
	a, err := Predict(r)
	if err != nil || a.OptimalBatch != 2 || len(a.ToFit) == 0 {
		t.Errorf("%+v, %v after %d events", a, err, r.Work.Spent())
	}
}

// TestSearchedChangesTakeTooMuch has work for all of an answer but the changes: there is
// an answer, which says that they are missing.
func TestSearchedChangesTakeTooMuch(t *testing.T) {
	for _, c := range []string{
		`{"model": "bert", "config": {"num_hidden_layers": 2}, "batch": 4096}`,
		`{"model": "llama-3.1-8b", "config": {"num_hidden_layers": 12}}`, // of which no batch trains
	} {
		enough := requestOf(t, "a10", c)
		enough.Work = workbudget.New(workbudget.PerCommand, nil)
		want := answerOf(t, enough)
		if len(want.ToFit) == 0 {
			t.Fatalf("%s: nothing makes it fit", c)
		}
		r := requestOf(t, "a10", c)
		r.Changes, r.Work = true, workbudget.New(enough.Work.Spent()-1, nil)
		got := answerOf(t, r)
		if got.OptimalBatch != want.OptimalBatch || len(got.ToFit) > 0 || !hasNote(got, "takes too much computation") {
			t.Errorf("%s: %+v", c, got)
		}
	}
}

// answerOf is an answer, also one that no batch trains.
func answerOf(t *testing.T, r Request) *Answer {
	t.Helper()
	a, err := Predict(r)
	if err != nil {
		a = Refusal(err)
	}
	if a == nil {
		t.Fatal(err)
	}
	return a
}

func exampleLengths(t *testing.T) *workload.Lengths {
	t.Helper()
	data := testmachine.ReadFile(t, "../../examples/lengths.txt")
	lengths, err := workload.ReadLengths(data)
	if err != nil {
		t.Fatal(err)
	}
	return lengths
}

// TestWorkEndsAfterTheLargest has work for the largest batch and for more or less of the
// rest: there is always an answer, and it says what it lacks.
func TestWorkEndsAfterTheLargest(t *testing.T) {
	r := requestOf(t, "rtx-4090", `{"model": "gpt2", "config": {"num_hidden_layers": 1}, "sequence": 512, "batch": 1, "attention_mask": "padded", "limit_gib": 3}`)
	r.Workload.Lengths = exampleLengths(t)
	r.Work = workbudget.New(workbudget.PerCommand, nil)
	p, err := newPlanner(r)
	if err != nil {
		t.Fatal(err)
	}
	largest, err := p.largest(p.run)
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range []int64{r.Workload.Batch, largest, largest} {
		if _, err := p.run.Process(batch); err != nil {
			t.Fatal(err)
		}
	}
	found := r.Work.Spent()
	r.Work = workbudget.New(workbudget.PerCommand, nil)
	want := answerOf(t, r)
	all := r.Work.Spent()
	const lacks = "the answer lacks"
	if hasNote(want, lacks) {
		t.Errorf("with enough work: %+v", want.Notes)
	}
	for part := range int64(2) {
		r.Work = workbudget.New(found+(all-found)*(2*part+1)/4, nil)
		got, err := Predict(r)
		if err != nil {
			t.Errorf("with %d of %d events, of which the largest batch takes %d: %v", r.Work.Spent(), all, found, err)
			continue
		}
		if hasNote(got, "full fine-tuning") || hasNote(got, "accumulate") {
			t.Errorf("it lacks what was not asked for: %+v", got.Notes)
		}
		if got.OptimalBatch != largest || got.OptimalMemory != want.OptimalMemory || !hasNote(got, lacks) {
			t.Errorf("batch %d, want %d; %+v", got.OptimalBatch, largest, got.Notes)
		}
		if got.Recommended != 0 && got.Recommended != want.Recommended {
			t.Errorf("batch %d is recommended, with more work %d", got.Recommended, want.Recommended)
		}
	}
}

// TestManyPassesOfLengths: steps of many passes, and deep models, run fewer drawn steps
// instead of none.
func TestManyPassesOfLengths(t *testing.T) {
	for _, c := range []string{
		`{"model": "llama-3.1-8b", "batch": 2, "sequence": 512, "accumulate": 8, "precision": "bf16", "adapter": {"rank": 16}}`,
		`{"model": "llama-3.1-70b", "batch": 2, "sequence": 512, "quantize": "nf4-double", "checkpointing": true, "adapter": {"rank": 16, "targets": "all-linear"}}`,
	} {
		r := requestOf(t, "h200", c)
		r.Workload.Lengths = exampleLengths(t)
		p, err := predict.Predict(r.Workload, r.Card, predict.Options{})
		if err != nil {
			t.Errorf("%s: %v", c, err)
			continue
		}
		if p.Lengths == nil || p.Lengths.Drawn < 2 || p.Lengths.Drawn >= 30 || p.Lengths.Most.Sequence != 512 {
			t.Errorf("%s: %+v", c, p.Lengths)
		}
	}
}

func hasNote(a *Answer, text string) bool {
	return slices.ContainsFunc(a.Notes, func(n Note) bool { return strings.Contains(n.Text, text) })
}
