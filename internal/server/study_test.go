package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/evidence"
	"memorymark/internal/study"
)

func TestSweep(t *testing.T) {
	c := start(t)
	sweep := into[study.Sweep](t, c.post("/v1/sweeps", `{"workload":{"model":"lm-small","gpu":"t4","sequence":64},
		"axes":[{"key":"batch","values":[1,2,"2"]},{"key":"precision","values":["fp32","amp-bf16"]},{"key":"checkpointing","values":[false]}]}`), http.StatusOK)
	if len(sweep.Axes) != 3 || len(sweep.Cells) != 4 {
		t.Fatalf("%d axes and %d cells", len(sweep.Axes), len(sweep.Cells))
	}
	for i, cell := range sweep.Cells {
		if cell.Peak == nil || cell.Peak.Allocated == 0 || cell.Engine != evidence.Predicted || cell.Provenance.Accuracy == nil {
			t.Errorf("cell %d: %+v", i, cell.Result)
		}
	}
	if got := sweep.Cells[3]; got.Values["batch"] != "2" || got.Values["precision"] != "amp-bf16" || got.Workload.Batch != 2 || got.Workload.Precision != "amp-fp16" {
		t.Errorf("%+v of %+v: a T4 has no bf16", got.Values, got.Workload)
	}
}

// A cell that cannot be says why in its place, and the others are there.
func TestSweepWithABadCell(t *testing.T) {
	sweep := into[study.Sweep](t, start(t).post("/v1/sweeps", `{"axes":[{"key":"model","values":["resnet-18","nothing"]}]}`), http.StatusOK)
	if len(sweep.Cells) != 2 || sweep.Cells[0].Peak == nil || !strings.Contains(sweep.Cells[1].Error, "nothing") {
		t.Errorf("%+v", sweep.Cells)
	}
}

func TestBadSweeps(t *testing.T) {
	c := start(t)
	many := "1"
	for i := range 30 {
		many += fmt.Sprintf(",%d", i+2)
	}
	for body, place := range map[string]string{
		`{}`:                                     "body",
		`{"axes":[]}`:                            "body.axes",
		`{"axes":[{"key":"batch","values":[]}]}`: "body.axes[0].values",
		`{"axes":[{"key":"batch","values":[{}]}]}`:                                                      "body.axes[0].values[0]",
		`{"axes":[{"key":"colour","values":[1]}]}`:                                                      "body.axes[0].key",
		`{"axes":[{"key":"config","values":["{}"]}]}`:                                                   "body.axes[0].key",
		`{"axes":[{"key":"batch","values":[1]},{"key":"batch","values":[2]}]}`:                          "body.axes[1].key",
		`{"workload":{"batch":1},"axes":[{"key":"batch","values":[1]}]}`:                                "body.axes[0].key",
		`{"axes":[{"key":"batch","values":[1]}]}`:                                                       "body.workload.model",
		`{"workload":{"model":"bert","gpu":"x"},"axes":[{"key":"batch","values":[1]}]}`:                 "body.workload.gpu",
		`{"workload":{"model":"train.py"},"axes":[{"key":"batch","values":[1]}]}`:                       "body.workload.model",
		`{"axes":[{"key":"batch","values":[` + many + `]},{"key":"sequence","values":[` + many + `]}]}`: "body.axes",
	} {
		got := into[huma.ErrorModel](t, c.post("/v1/sweeps", body), http.StatusUnprocessableEntity)
		if len(got.Errors) == 0 || got.Errors[0].Location != place {
			t.Errorf("%.80s: %+v", body, got)
		}
	}
}

// Nothing is computed for a client that left.
func TestSweepEndsWithItsClient(t *testing.T) {
	s := newServer(t)
	fill(t, s.compute.cores) // so that it waits
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.sweep(ctx, SweepQuestion{Axes: []SweepAxis{{"model", []sweepValue{"bert", "gpt2"}}}})
		done <- err
	}()
	leave()
	if err := <-done; statusOf(err) != statusClientGone {
		t.Errorf("%v", err)
	}
}

func TestActivation(t *testing.T) {
	c := start(t)
	a := into[study.Activation](t, c.post("/v1/activations", `{"model":"lm-2.7b","batch":4,"sequence":512}`), http.StatusOK)
	if a.Residual.Bytes != 20<<20 || !strings.Contains(a.GPU, "A10") || len(a.Block) == 0 {
		t.Errorf("%v on an %s", a.Residual, a.GPU)
	}
	got := into[huma.ErrorModel](t, c.post("/v1/activations", `{"model":"bert"}`), http.StatusUnprocessableEntity)
	if len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, "not a plain language model") {
		t.Errorf("%+v", got)
	}
}

func TestReport(t *testing.T) {
	c := start(t)
	page := c.post("/v1/reports", `{"models":["lm-small"],"sequences":[64],"gpu":"t4"}`, "Accept", "text/html")
	if page.StatusCode != http.StatusOK || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("%s %v: %s", page.Status, page.Header, page.text)
	}
	for _, want := range []string{"data:image/png;base64", "predicted", "small"} {
		if !strings.Contains(page.text, want) {
			t.Errorf("no %s on the page", want)
		}
	}
	if strings.Contains(page.text, `id="files"`) {
		t.Error("a page alone names files beside it")
	}
	for body, place := range map[string]string{
		`{"models":["bert"]}`: "body.models[0]", `{"sequences":[0]}`: "body.sequences[0]", `{"gpu":"x"}`: "body.gpu",
		`{"precision":"fp32"}`: "body.precision", `{"batch":-1}`: "body.batch", `{"batch":4611686018427387904}`: "body.batch",
	} {
		got := into[huma.ErrorModel](t, c.post("/v1/reports", body), http.StatusUnprocessableEntity)
		if len(got.Errors) == 0 || got.Errors[0].Location != place {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

// A study of steps that take more than a petabyte is refused, and is no fault.
func TestHugeStudies(t *testing.T) {
	c := start(t)
	for path, body := range map[string]string{
		"/v1/reports":     `{"models": ["lm-small"], "sequences": [1048576], "batch": 2000}`,
		"/v1/activations": `{"model": "lm-small", "sequence": 1048576, "batch": 2000}`,
	} {
		if r := c.post(path, body); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(r.text, "more than 1 PiB of memory") {
			t.Errorf("%s: %s: %s", path, r.Status, r.text)
		}
	}
}
