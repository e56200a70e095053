package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/workload/workloadtest"
)

// A request is the same after its way to a worker.
func TestOrder(t *testing.T) {
	for _, text := range []string{`{"model":"resnet-18","batch":3}`, `{"config":{"model_type":"bert","num_hidden_layers":2},"sequence":64}`} {
		w := workloadtest.Parse(t, text)
		r := requestOn(t, "t4", `{"model": "bert"}`)
		r.Workload, r.MultipleOf, r.Changes, r.Reserve = w, 8, true, 1<<20
		o, err := NewOrder(r, evidence.Predicted)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParseOrder(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read.Request()
		if err != nil {
			t.Fatal(err)
		}
		again, err := NewOrder(got, evidence.Predicted)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(o, again); diff != "" || got.Card != r.Card {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, wrong := range []string{``, `{"engine":"guessed"}`, `{"engine":"predicted","colour":1}`} {
		if _, err := ParseOrder([]byte(wrong)); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
}

func requestOn(t *testing.T, card, text string) analysis.Request {
	t.Helper()
	w := workloadtest.Parse(t, text)
	c := workloadtest.Card(t, card)
	return analysis.Request{Workload: w, Card: c}
}
