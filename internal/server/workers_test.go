package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/job"
)

// member is a worker that does as it is told, and nothing else.
func (c *client) member() *job.Link {
	c.t.Helper()
	ctx := c.t.Context()
	link, err := c.s.opts.Jobs.Link(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	say := func(draining bool) error {
		return link.Announce(ctx, job.Worker{Host: "rack-1", Cards: []job.Card{{ID: "t4"}}, Draining: draining})
	}
	stop, err := link.OnDrain(func(drain bool) { _ = say(drain) }) // or the server says that it was not heard
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(stop)
	if err := say(false); err != nil {
		c.t.Fatal(err)
	}
	for len(c.s.opts.Jobs.Workers()) == 0 {
		time.Sleep(time.Millisecond)
	}
	return link
}

func TestDrainWorker(t *testing.T) {
	c := start(t)
	id := c.member().ID()
	drain := "/v1/workers/" + id + "/drain"
	if w := into[job.Worker](t, c.do(http.MethodPost, drain, ""), http.StatusOK); w.ID != id || !w.Draining {
		t.Errorf("drained as %+v", w)
	}
	if f := into[Fleet](t, c.get("/v1/workers"), http.StatusOK); len(f.Workers) != 1 || !f.Workers[0].Draining {
		t.Errorf("%+v", f)
	}
	if text := c.get("/metrics").text; !strings.Contains(text, `memorymark_worker_cards{gpu="t4",state="draining"} 1`) {
		t.Errorf("no draining card in\n%s", text)
	}
	if a := c.begin(`{"workload":` + small + `}`); a.Engine != "predicted" {
		t.Errorf("a card of a worker that drains is waited for: %+v", a)
	}
	if w := into[job.Worker](t, c.do(http.MethodDelete, drain, ""), http.StatusOK); w.Draining {
		t.Errorf("resumed as %+v", w)
	}
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		got := into[huma.ErrorModel](t, c.do(method, "/v1/workers/nobody/drain", ""), http.StatusNotFound)
		if !strings.Contains(got.Detail, "no such worker") {
			t.Errorf("%s: %+v", method, got)
		}
	}
}

// A worker that cannot be reached is not said to drain.
func TestDrainUnheard(t *testing.T) {
	c := start(t)
	link, err := c.s.opts.Jobs.Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := link.Announce(t.Context(), job.Worker{}); err != nil {
		t.Fatal(err)
	}
	for len(c.s.opts.Jobs.Workers()) == 0 {
		time.Sleep(time.Millisecond)
	}
	into[huma.ErrorModel](t, c.do(http.MethodPost, "/v1/workers/"+link.ID()+"/drain", ""), http.StatusGatewayTimeout)
}
