package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/engine"
	"memorymark/internal/job"
)

const ownCode = `{"code":{"files":{"train.py":"def make(): pass"},"file":"train.py","function":"make"},"workload":{"batch":4,"gpu":"t4"}}`

// announce has a worker say that it takes the jobs of a card.
func (c *client) announce(card string) (worker string) {
	c.t.Helper()
	m, err := c.s.opts.Jobs.Join(c.t.Context(), "", job.Announcement{Host: "lab", Cards: []job.Card{{ID: card}}})
	if err != nil {
		c.t.Fatal(err)
	}
	return m.ID
}

// TestCodeNeedsAWorker refuses code unless a worker was started to run some, and
// says what to do. Then it is queued for that worker alone.
func TestCodeNeedsAWorker(t *testing.T) {
	c := start(t)
	refused := into[huma.ErrorModel](t, c.post("/v1/analyses/code", ownCode), http.StatusNotImplemented)
	if !strings.Contains(refused.Detail, "memorymark worker --allow-code") {
		t.Errorf("it says %q", refused.Detail)
	}
	c.announce(engine.EmulationQueue) // who runs no code
	into[huma.ErrorModel](t, c.post("/v1/analyses/code", ownCode), http.StatusNotImplemented)

	c.announce(engine.CodeQueue)
	a := into[Analysis](t, c.post("/v1/analyses/code", ownCode), http.StatusAccepted)
	if a.State != job.Queued || a.Engine != "emulated" || a.GPU != "t4" || a.Workload.Batch != 4 {
		t.Errorf("%+v", a)
	}
	j, err := c.s.opts.Jobs.Get(t.Context(), a.ID)
	if err != nil || j.Card != engine.CodeQueue || j.Labels["model"] != "train.py:make" {
		t.Errorf("%+v, %v", j, err)
	}
	got := into[Analysis](t, c.get("/v1/analyses/"+a.ID), http.StatusOK)
	if got.ID != a.ID || got.Workload.Batch != 4 {
		t.Errorf("%+v", got)
	}
}

func TestBadCode(t *testing.T) {
	c := start(t)
	for name, body := range map[string]string{
		"a path":        strings.ReplaceAll(ownCode, "train.py", "../train.py"),
		"no function":   strings.Replace(ownCode, `"make"`, `"os.system"`, 1),
		"another model": strings.Replace(ownCode, `"batch"`, `"model":"bert","batch"`, 1),
		"a config":      strings.Replace(ownCode, `"batch":4`, `"config":{"model_type":"bert"}`, 1),
		"another key":   strings.Replace(ownCode, `"batch"`, `"colour":1,"batch"`, 1),
		"another GPU":   strings.Replace(ownCode, `"t4"`, `"abacus"`, 1),
		"too large":     strings.Replace(ownCode, "def make(): pass", strings.Repeat("#", 1<<20+1), 1),
	} {
		t.Run(name, func(t *testing.T) {
			r := c.post("/v1/analyses/code", body)
			if r.StatusCode != http.StatusUnprocessableEntity && r.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("it is answered with %s", r.Status)
			}
		})
	}
}
