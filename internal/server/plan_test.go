package server

import (
	"net/http"
	"strings"
	"testing"

	"memorymark/internal/plan"
)

func TestPlan(t *testing.T) {
	c := start(t)
	got := into[plan.Plan](t, c.post("/v1/plans", `{"workload": {"model": "gpt2"}, "gpus": ["t4", "h100"], "max_gpus": 2}`), http.StatusOK)
	if got.Cheapest == nil || *got.Cheapest.Dollars <= 0 || got.Cheapest.Recipe.TrainingArguments == "" || len(got.Options) < 4 {
		t.Errorf("%+v", got)
	}
	if within := into[plan.Plan](t, c.post("/v1/plans", `{"workload": {"model": "gpt2"}, "gpus": ["t4"], "max_gpus": 1, "within": {"days": 0.001}}`), http.StatusOK); len(within.Options) != 0 {
		t.Errorf("%d options within 1.4 minutes", len(within.Options))
	}
}

func TestBadPlans(t *testing.T) {
	c := start(t)
	for body, want := range map[string]string{
		`{"workload": {"model": "gpt9"}}`:                             `is not in the catalog`,
		`{"workload": {"model": "gpt2"}, "gpus": ["voodoo"]}`:         "body.gpus[0]",
		`{"workload": {"model": "gpt2"}, "max_gpus": 100000}`:         "body.max_gpus",
		`{"workload": {"model": "gpt2", "batch": 4}, "gpus": ["t4"]}`: "global_batch",
	} {
		if r := c.post("/v1/plans", body); r.StatusCode != http.StatusUnprocessableEntity && r.StatusCode != http.StatusBadRequest || !strings.Contains(r.text, want) {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.text)
		}
	}
}
