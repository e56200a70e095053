package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"memorymark/internal/admission"
	"memorymark/internal/allocator"
	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

const notModelled = `{"id":"mine","config":{"model_type":"fnet","num_hidden_layers":2},"gpu":"t4"}`

// emulates answers as an emulation would, and counts.
func emulates(asked *[]analysis.Request, failure error) func(*Options) {
	return func(o *Options) {
		o.Emulate = func(_ context.Context, r analysis.Request) (*analysis.Prediction, error) {
			*asked = append(*asked, r)
			if failure != nil {
				return nil, failure
			}
			return &analysis.Prediction{
				Prediction: predict.Prediction{Engine: evidence.Emulated, Fits: true, Steps: []allocator.Usage{{PeakAllocated: 5}}, Workload: r.Workload, GPU: r.Card.ID},
				Emulation:  &analysis.Emulation{Because: r.Workload.Unmodelled},
			}, nil
		}
	}
}

// A prediction is emulated if that is asked for, or if it cannot be predicted,
// and the same one once.
func TestEmulatedPrediction(t *testing.T) {
	var asked []analysis.Request
	c := start(t, emulates(&asked, nil))
	for _, test := range []struct {
		query, body string
		engine      evidence.Engine
		asked       int // so far
	}{
		{"", small, evidence.Predicted, 0},
		{"?engine=predicted", small, evidence.Predicted, 0},
		{"?engine=emulated", small, evidence.Emulated, 1},
		{"?engine=emulated", small, evidence.Emulated, 1},
		{"?engine=auto", notModelled, evidence.Emulated, 2},
		{"", strings.Replace(notModelled, "mine", "other", 1), evidence.Emulated, 2},
	} {
		p := into[analysis.Prediction](t, c.post("/v1/predictions"+test.query, test.body), http.StatusOK)
		if p.Engine != test.engine || len(asked) != test.asked || len(p.Steps) == 0 {
			t.Errorf("%s %s: %+v, asked %d times", test.query, test.body, p, len(asked))
		}
		if id := p.Workload.ID; strings.Contains(test.body, "fnet") && (p.ID != id || !strings.Contains(test.body, id) || p.Because == "") {
			t.Errorf("%s: %+v", test.body, p)
		}
	}
	for query, status := range map[string]int{"?engine=measured": http.StatusUnprocessableEntity, "?engine=predicted": http.StatusUnprocessableEntity} {
		if r := c.post("/v1/predictions"+query, notModelled); r.StatusCode != status {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.text)
		}
	}
}

// Where nothing can be emulated it is said why, and what to do.
func TestNoEmulation(t *testing.T) {
	var asked []analysis.Request
	cannot := &CannotEmulateError{"there is no PyTorch"}
	for name, test := range map[string]struct {
		change []func(*Options)
		body   string
		status int
		says   string
	}{
		"not wanted":        {nil, small, http.StatusNotImplemented, "--no-measuring"},
		"no PyTorch":        {[]func(*Options){emulates(&asked, cannot)}, small, http.StatusNotImplemented, "there is no PyTorch"},
		"and not modelled":  {[]func(*Options){emulates(&asked, cannot)}, notModelled, http.StatusUnprocessableEntity, "is not modelled"},
		"a failing step":    {[]func(*Options){emulates(&asked, &measure.Failure{Class: measure.Other, Message: "no such layer", Traceback: "/home"})}, small, http.StatusUnprocessableEntity, "no such layer"},
		"a missing package": {[]func(*Options){emulates(&asked, &measure.Failure{Class: measure.Missing, Message: "pip install peft"})}, small, http.StatusNotImplemented, "pip install peft"},
		"a step for ever":   {[]func(*Options){emulates(&asked, &measure.Failure{Class: measure.Timeout})}, small, http.StatusGatewayTimeout, "took too long"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, test.change...).post("/v1/predictions?engine=emulated", test.body)
			if r.StatusCode != test.status || !strings.Contains(r.text, test.says) || strings.Contains(r.text, "/home") {
				t.Errorf("%d %s", r.StatusCode, r.text)
			}
		})
	}
}

// Emulations run one after the other, a bounded number wait, and no turn goes
// to a client that left.
func TestEmulationsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		e := newEmulations(func(ctx context.Context, _ analysis.Request) (*analysis.Prediction, error) {
			running++
			most = max(most, running)
			defer func() { running-- }()
			select {
			case <-time.After(time.Second):
				return &analysis.Prediction{}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		card := workloadtest.Card(t, "t4")
		ask := func(ctx context.Context, batch int64) error {
			_, err := e.answer(ctx, analysis.Request{Workload: &workload.Workload{Batch: batch}, Card: card})
			return err
		}
		var all sync.WaitGroup
		began := time.Now()
		leaving, leave := context.WithCancel(t.Context())
		for i := range 17 { // one runs, and half of those that may wait are of one client
			ctx := t.Context()
			if i%2 == 0 {
				ctx = leaving
			}
			all.Go(func() {
				if err := ask(ctx, int64(i)); (err != nil) != (i%2 == 0) {
					t.Errorf("request %d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		if err := ask(t.Context(), 99); !isA[*admission.BusyError](err) {
			t.Errorf("one too many: %v", err)
		}
		leave()
		all.Wait()
		if took := time.Since(began); most != 1 || took < 8*time.Second || took > 9*time.Second {
			t.Errorf("%d at a time, %v in all", most, took)
		}
	})
}
