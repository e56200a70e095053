package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/plan"
)

func TestPlan(t *testing.T) {
	c := start(t)
	got := into[plan.Plan](t, c.post("/v1/plans", `{"workload": {"model": "gpt2"}, "gpus": ["t4", "h100"], "max_gpus": 2}`), http.StatusOK)
	if got.Cheapest == nil || *got.Cheapest.Dollars <= 0 || got.Cheapest.Recipe == nil || len(got.Options) < 4 {
		t.Errorf("%+v", got)
	}
	if within := into[plan.Plan](t, c.post("/v1/plans", `{"workload": {"model": "gpt2"}, "gpus": ["t4"], "max_gpus": 1, "within": {"days": 0.001}}`), http.StatusOK); len(within.Options) != 0 {
		t.Errorf("%d options within 1.4 minutes", len(within.Options))
	}
}

// Amounts are read as people write them, and the answer says what was read.
func TestPlanOfAmount(t *testing.T) {
	c := start(t)
	ask := func(amount string) reply {
		return c.post("/v1/plans", `{"workload": {"model": "gpt2"}, "gpus": ["t4"], "max_gpus": 1, "tokens": `+amount+`}`)
	}
	for amount, want := range map[string]float64{`"300M"`: 3e8, `2e9`: 2e9} {
		if got := into[plan.Plan](t, ask(amount), http.StatusOK); got.Tokens != want {
			t.Errorf("%s was read as %v", amount, got.Tokens)
		}
	}
	for _, wrong := range []string{`"many"`, `-1`, `true`} {
		if r := ask(wrong); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(r.text, "write 1B, 500M or 20k") {
			t.Errorf("%s: %d %s", wrong, r.StatusCode, r.text)
		}
	}
}

// A plan that is watched says how much of it is made, of a number that stays,
// and ends with what the plain question answers.
func TestWatchPlan(t *testing.T) {
	c := start(t)
	body := `{"workload": {"model": "gpt2"}, "gpus": ["t4", "h100"], "max_gpus": 8}`
	r := c.post("/v1/plans/events", body)
	if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%d %s", r.StatusCode, r.text)
	}
	var last PlanProgress
	events := strings.Split(strings.TrimSpace(r.text), "\n\n")
	for _, e := range events[:len(events)-1] {
		var now PlanProgress
		data, ok := strings.CutPrefix(e, "event: progress\ndata: ")
		if err := json.Unmarshal([]byte(data), &now); !ok || err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		if now.Done < last.Done || now.Done > now.Of || last.Of > 0 && now.Of != last.Of {
			t.Errorf("%+v after %+v", now, last)
		}
		last = now
	}
	var got plan.Plan
	data, ok := strings.CutPrefix(events[len(events)-1], "event: plan\ndata: ")
	if err := json.Unmarshal([]byte(data), &got); !ok || err != nil {
		t.Fatalf("%.200s: %v", events[len(events)-1], err)
	}
	plain := into[plan.Plan](t, c.post("/v1/plans", body), http.StatusOK)
	if *got.Cheapest.Dollars != *plain.Cheapest.Dollars || len(got.Options) != len(plain.Options) {
		t.Errorf("%+v, want %+v", got, plain)
	}
	wrong := c.post("/v1/plans/events", `{"workload": {"model": "gpt2"}, "gpus": ["voodoo"]}`)
	if !strings.HasPrefix(wrong.text, "event: problem\n") || !strings.Contains(wrong.text, "voodoo") {
		t.Errorf("%d %s", wrong.StatusCode, wrong.text)
	}
}

// What no one waits for ends: of a plan that takes many seconds of a core, the next
// event that is counted sees that its client has left.
func TestPlanLeaving(t *testing.T) {
	c := start(t)
	ctx, leave := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/plans", strings.NewReader(`{"workload": {"model": "llama-3.1-8b", "sequence": 4096}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	left := make(chan error)
	go func() {
		answer, err := c.http.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		left <- err
	}()
	for !busy(c.s.compute.long) {
		time.Sleep(time.Millisecond)
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatalf("it was answered before anybody could leave: %v", err)
	}
	for began := time.Now(); busy(c.s.compute.long); time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("it is still computed")
		}
	}
}

// A plan takes no more work than it may.
func TestPlanWithinItsBudget(t *testing.T) {
	c := start(t)
	c.s.planBudget = 1000
	if r := c.post("/v1/plans", `{"workload": {"model": "gpt2"}, "gpus": ["t4"]}`); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(r.text, "too much computation") {
		t.Errorf("%d %s", r.StatusCode, r.text)
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

func TestFit(t *testing.T) {
	c := start(t)
	got := into[plan.Fit](t, c.post("/v1/fits", `{"workload": {"model": "gpt2", "gpu": "t4", "batch": 64, "sequence": 512}}`), http.StatusOK)
	if got.Fits || got.GPU != "t4" || len(got.Options) == 0 || len(got.Options[0].Changes) == 0 || got.Reason == "" {
		t.Errorf("%+v", got)
	}
	if got := into[plan.Fit](t, c.post("/v1/fits", `{"workload": {"model": "gpt2", "gpu": "h200"}}`), http.StatusOK); !got.Fits || len(got.Options) != 0 {
		t.Errorf("%+v", got)
	}
	into[huma.ErrorModel](t, c.post("/v1/fits", `{"workload": {"model": "gpt9"}}`), http.StatusUnprocessableEntity)
}
