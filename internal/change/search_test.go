package change

import (
	"slices"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

func question(t *testing.T, draft, card string) Question {
	t.Helper()
	d, err := workload.ParseDraft([]byte(draft))
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.Workload()
	if err != nil {
		t.Fatal(err)
	}
	c := workloadtest.Card(t, card)
	return Question{Draft: d, Card: c, Limit: predict.Limit(w, c), Margin: predict.MarginOf(w, c), Given: Given(d)}
}

func least(t *testing.T, q Question) *Findings {
	t.Helper()
	a, err := Least(q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func labels(a *Findings) (out []string) {
	for _, s := range a.Sets {
		out = append(out, Labels(s.Changes)+": "+string(s.Verdict))
	}
	return out
}

// What makes another training of it is offered together with what does not, and neither
// hides the other.
func TestKindsOfTraining(t *testing.T) {
	a := least(t, question(t, `{"model": "llama-3.2-1b", "batch": 8}`, "t4"))
	t.Log(labels(a))
	has := func(what func(Set) bool) bool { return slices.ContainsFunc(a.Sets, what) }
	for name, is := range map[string]func(Set) bool{
		"LoRA": func(s Set) bool { return s.Trains == Adapters && s.Workload.Adapter.Rank == 16 },
		"SGD":  func(s Set) bool { return s.Workload.Optimizer == workload.SGD },
		"all weights with AdamW": func(s Set) bool {
			return s.Trains == AllWeights && s.Workload.Optimizer != workload.SGD
		},
	} {
		if !has(is) {
			t.Errorf("no set trains with %s: %v", name, labels(a))
		}
	}
}

// Every set is what a prediction says of the question with its patches, and no
// smaller one of the same kind leaves the margin.
func TestSetsArePredictions(t *testing.T) {
	for _, x := range [][2]string{
		{`{"model": "gpt2", "sequence": 1024, "batch": 16}`, "rtx-4060"},
		{`{"model": "qwen2.5-3b", "batch": 16}`, "a10"},
		{`{"model": "bert", "batch": 512, "precision": "fp32"}`, "a10"},
		{`{"model": "llama-3.2-1b", "sequence": 512, "batch": 4}`, "t4"}, // with tight sets
	} {
		q := question(t, x[0], x[1])
		a := least(t, q)
		t.Log(labels(a))
		if len(a.Sets) == 0 || a.Nearest != nil {
			t.Errorf("%s on %s: %+v", x[0], x[1], a)
		}
		for _, s := range a.Sets {
			w := patched(t, q, s.Changes)
			p, err := predict.Predict(w, q.Card, predict.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if p.Verdict != s.Verdict || p.PeakReserved() != s.Peak.PeakReserved {
				t.Errorf("%s: %v and %v; predicted are %v and %v", Labels(s.Changes), s.Verdict, s.Peak.PeakReserved, p.Verdict, p.PeakReserved())
			}
			for i := range s.Changes { // each is needed
				without := patched(t, q, slices.Delete(slices.Clone(s.Changes), i, i+1))
				if p, err := predict.Predict(without, q.Card, predict.Options{}); err == nil && rank(p.Verdict) <= rank(s.Verdict) {
					t.Errorf("%s: %s without %s", Labels(s.Changes), p.Verdict, s.Changes[i].Label)
				}
			}
		}
	}
}

// patched is a question with patches, as a user would apply them.
func patched(t *testing.T, q Question, changes []Change) *workload.Workload {
	t.Helper()
	w, err := Apply(q.Draft, changes).Workload()
	if err != nil {
		t.Fatalf("%s: %v", Labels(changes), err)
	}
	return w
}

// What is given stays, and so do the samples of an update.
func TestGivenStays(t *testing.T) {
	q := question(t, `{"model": "gpt2", "sequence": 1024, "batch": 24, "precision": "fp32", "optimizer": "adamw"}`, "rtx-4060")
	q.Full = true
	a := least(t, q)
	if len(a.Sets) == 0 {
		t.Fatal("nothing was found")
	}
	for _, s := range a.Sets {
		w := s.Workload
		if w.Precision != workload.FP32 || w.Optimizer != workload.AdamW || w.Adapter != nil || w.Batch*int64(w.Accumulate) != 24 {
			t.Errorf("%s is not what was asked for", Labels(s.Changes))
		}
	}
}

// A set with less than the margin to spare does not hide larger ones that leave it,
// and comes after them.
func TestTightComesLast(t *testing.T) {
	q := question(t, `{"model": "gpt2", "batch": 64}`, "a10")
	plain, err := predict.Predict(patched(t, q, []Change{Split(32, 2)}), q.Card, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q.Limit = plain.PeakReserved() + q.Margin/2 // for the half batch, but not for it with a margin
	a := least(t, q)
	t.Log(labels(a))
	if a.Sets[0].Verdict != predict.Fits {
		t.Errorf("the first is %v", a.Sets[0].Verdict)
	}
	for i := range a.Sets[1:] {
		if rank(a.Sets[i].Verdict) > rank(a.Sets[i+1].Verdict) {
			t.Errorf("%v", labels(a))
		}
	}
	for _, s := range a.Sets {
		if left := q.Limit - s.Peak.PeakReserved; (left < q.Margin) != (s.Verdict == predict.Tight) {
			t.Errorf("%s leaves %v of a margin of %v and is %s", Labels(s.Changes), left, q.Margin, s.Verdict)
		}
	}
}

// Where nothing helps, what comes nearest is what a prediction says it needs.
func TestNearest(t *testing.T) {
	q := question(t, `{"model": "phi-4"}`, "rtx-4060")
	a := least(t, q)
	if len(a.Sets) != 0 || a.Nearest == nil {
		t.Fatalf("%v", labels(a))
	}
	p, err := predict.Predict(patched(t, q, a.Nearest.Changes), q.Card, predict.Options{})
	if err != nil || p.Fits || p.PeakReserved() != a.Nearest.Peak.PeakReserved {
		t.Errorf("%s needs %v, predicted is %v: %v", Labels(a.Nearest.Changes), a.Nearest.Peak.PeakReserved, p.PeakReserved(), err)
	}
}

// What fits as one program and not as another does not fit, and its figures say so.
func TestNearestOfForms(t *testing.T) {
	q := question(t, `{"model": "phi-4", "batch": 1}`, "rtx-4060")
	q.Given, q.Full = []string{"precision", "optimizer", "checkpointing"}, true
	small := func(d workload.Draft) workload.Draft {
		d["model"] = []byte(`"gpt2"`)
		return d
	}
	q.Forms = []Form{small, AsAsked}
	a := least(t, q)
	if len(a.Sets) != 0 || a.Nearest == nil {
		t.Fatalf("%v", labels(a))
	}
	if a.Nearest.Peak.PeakReserved <= q.Limit || a.Nearest.Workload.Model != "phi-4" {
		t.Errorf("%s needs %v of %v", a.Nearest.Workload.Model, a.Nearest.Peak.PeakReserved, q.Limit)
	}
}

// A batch is split into no more parts than can be accumulated.
func TestHugeBatch(t *testing.T) {
	a := least(t, question(t, `{"model": "phi-4", "batch": 49045}`, "rtx-4060"))
	if len(a.Sets) != 0 || a.Nearest == nil || a.Nearest.Workload.Accumulate > workload.MaxAccumulate {
		t.Errorf("%+v", a)
	}
}

// Every row sets keys of a workload to values that it can have.
func TestTable(t *testing.T) {
	for _, axis := range Table {
		for _, r := range axis {
			d := workload.Draft{"model": []byte(`"gpt2"`)}
			if strings.HasPrefix(r.Label, "4-bit weights") {
				d["adapter"] = []byte(LoRA)
			}
			before, err := d.Workload()
			if err != nil {
				t.Fatal(err)
			}
			w, err := Apply(d, []Change{r.Change}).Workload()
			if err != nil {
				t.Errorf("%s: %v", r.Label, err)
				continue
			}
			for _, card := range []string{"t4", "h100"} {
				c, _ := gpu.Find(card)
				if r.Applies(before, c) == r.Applies(w, c) && r.On(c) {
					t.Errorf("%s applies to what has it already", r.Label)
				}
			}
		}
	}
}
