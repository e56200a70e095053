package job

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// TestTwoServers has two servers share an engine. They never give a job away twice,
// and a worker that speaks to one is heard and told by the other.
func TestTwoServers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, url := wiredCluster(t, newNetwork(), 1)
	var servers [2]*bench
	for i := range servers {
		q, err := Open(ctx, Config{URL: url, Lease: briefLease})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(q.Close)
		servers[i] = &bench{T: t, ctx: ctx, q: q, card: "t4"}
	}
	here, there := servers[0], servers[1]
	takeAtOnce(here, there)

	// A heartbeat to one server keeps the lease, whichever server looks after silence.
	h := here.link()
	j := there.submit(`"long"`)
	h.a.Cards[0].Job, h.a.Cards[0].Attempt = here.take(h).job.ID, 1
	beats, stop := context.WithCancel(ctx)
	var beating sync.WaitGroup
	defer beating.Wait()
	defer stop()
	stopped := make(chan Stop, 1)
	beating.Go(func() {
		for beats.Err() == nil {
			o, err := h.q.Heartbeat(beats, "", h.id, h.a, briefLease/3)
			if err != nil {
				continue
			}
			if o.Drain != nil {
				h.a.Draining = *o.Drain
			}
			for _, s := range o.Stop {
				h.a.Cards[0].Attempt = 0
				stopped <- s
			}
		}
	})
	time.Sleep(3 * briefLease)
	if got := there.get(j.ID); got.State != Running || got.Attempt != 1 {
		t.Errorf("after three leases: %+v", got)
	}
	if w, err := there.q.Drain(ctx, h.id); err != nil || !w.Draining {
		t.Errorf("the other server drains it: %+v, %v", w, err)
	}
	began := time.Now()
	if _, err := there.q.Cancel(ctx, j.ID, ""); err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-stopped:
		if !s.Cancelled || time.Since(began) > time.Second {
			t.Errorf("after %v it is told %+v", time.Since(began), s)
		}
	case <-ctx.Done():
		t.Error("it is not told that the other server has cancelled its job")
	}
}

// takeAtOnce has workers of both servers wait for the same jobs.
func takeAtOnce(here, there *bench) {
	const jobs = 40
	var mu sync.Mutex
	taken := make(map[string]int)
	ctx, stop := context.WithCancel(here.ctx)
	var workers sync.WaitGroup
	for _, b := range []*bench{here, here, there, there} {
		h := b.link()
		workers.Go(func() {
			for ctx.Err() == nil {
				_, _ = h.q.Heartbeat(ctx, "", h.id, h.a, 0)
				j, err := h.q.Take(ctx, h.id, b.card, briefLease/4)
				if err != nil || j == nil {
					continue
				}
				mu.Lock()
				taken[j.ID]++
				mu.Unlock()
				l := &held{hand: h, job: *j}
				if err := l.succeed(here.ctx, "1"); err != nil {
					b.Errorf("job %s: %v", j.ID, err)
				}
			}
		})
	}
	var ids []string
	for i := range jobs {
		ids = append(ids, []*bench{here, there}[i%2].submit(fmt.Sprint(i)).ID)
	}
	for _, id := range ids {
		if j, err := here.q.Wait(here.ctx, id); err != nil || j.State != Succeeded || j.Attempt != 1 {
			here.Errorf("%+v, %v", j, err)
		}
	}
	stop()
	workers.Wait()
	for _, id := range ids {
		if taken[id] != 1 {
			here.Errorf("%s was taken %d times", id, taken[id])
		}
	}
}

// An engine that starts again does not keep servers from hearing of each other's
// workers, who would seem silent and lose their jobs.
func TestServersHearAfterTheEngineStartsAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	engine, url := wiredCluster(t, newNetwork(), 1)
	var servers [2]*Queue
	for i := range servers {
		q, err := Open(ctx, Config{URL: url, Lease: briefLease})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(q.Close)
		servers[i] = q
	}
	engine[0].end(os.Interrupt)
	engine[0].start(t)
	engine.recover(t)
	joined := time.Now()
	m, err := servers[0].Join(ctx, "", Announcement{Host: "a", Cards: []Card{{ID: "t4"}}})
	for err != nil && ctx.Err() == nil {
		m, err = servers[0].Join(ctx, "", Announcement{Host: "a", Cards: []Card{{ID: "t4"}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, heard := servers[1].fleet.find(m.ID); heard {
			return
		}
		if ctx.Err() != nil || time.Since(joined) > time.Minute {
			t.Fatal("the other server has not heard of the worker")
		}
		if _, err := servers[0].Heartbeat(ctx, "", m.ID, Announcement{Host: "a", Cards: []Card{{ID: "t4"}}}, briefLease/3); err != nil && ctx.Err() == nil {
			t.Log(err)
		}
	}
}
