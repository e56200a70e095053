package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/job"
)

// member is a worker that does as it is told, if it listens, and nothing else.
func (c *client) member(listens bool) (id string) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	q := c.s.opts.Jobs
	a := job.Announcement{Host: "rack-1", Cards: []job.Card{{ID: "t4"}}}
	m, err := q.Join(ctx, "", a)
	if err != nil {
		c.t.Fatal(err)
	}
	var beating sync.WaitGroup
	c.t.Cleanup(func() {
		stop()
		beating.Wait()
	})
	if listens {
		beating.Go(func() {
			for ctx.Err() == nil {
				if o, err := q.Heartbeat(ctx, "", m.ID, a, time.Second); err == nil && o.Drain != nil {
					a.Draining = *o.Drain
				}
			}
		})
	}
	return m.ID
}

func TestDrainWorker(t *testing.T) {
	c := start(t)
	id := c.member(true)
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
	into[huma.ErrorModel](t, c.do(http.MethodPost, "/v1/workers/"+c.member(false)+"/drain", ""), http.StatusGatewayTimeout)
}
