package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// The cases of workers that die, are cancelled, drain or give back.

func silentWorker(b *bench) {
	j := b.submit(`{}`)
	first := b.take(b.link())
	second := b.take(b.link())
	if got := second.job; got.ID != j.ID || got.Attempt != 2 || got.Deaths != 1 || got.Worker == first.job.Worker {
		b.Errorf("the second worker took %+v", got)
	}
	b.must(second.succeed(b.ctx, "{}"))
}

func thirdDeath(b *bench) {
	j := b.submit(`{"poison":true}`)
	for range MaxDeaths {
		b.take(b.link())
	}
	l := b.link()
	b.eventually("the job fails", func() bool {
		if lease, err := l.take(b.ctx); err != nil || lease != nil {
			b.Fatalf("took it a fourth time: %v, %v", lease, err)
		}
		return b.get(j.ID).State == Failed
	})
	if got := b.get(j.ID); got.Deaths != MaxDeaths || !strings.Contains(got.Reason, "3 workers died") {
		b.Errorf("failed as %+v", got)
	}
	if next := b.submit(`{"poison":true}`); next.ID == j.ID {
		b.Error("the failed job came back")
	}
}

func fencing(b *bench) {
	j := b.submit(`{}`)
	old := b.take(b.link())
	now := b.take(b.link())
	b.eventually("it is seen", func() bool { return errors.Is(old.beat(b.ctx), ErrLost) })
	for name, err := range map[string]error{
		"succeed": old.succeed(b.ctx, `"old"`),
		"fail":    old.fail(b.ctx, "old"), "give back": old.giveBack(b.ctx, "old"),
	} {
		if !errors.Is(err, ErrLost) {
			b.Errorf("the old attempt could %s: %v", name, err)
		}
	}
	b.must(now.beat(b.ctx))
	b.must(now.succeed(b.ctx, `"new"`))
	if err := old.succeed(b.ctx, `"old"`); !errors.Is(err, ErrLost) {
		b.Errorf("the old attempt succeeded, too: %v", err)
	}
	if r, err := b.q.Result(b.ctx, j.ID); err != nil || string(r) != `"new"` {
		b.Errorf("result %s, %v", r, err)
	}
}

// reportAtOnce is a worker that got no answer in time and reports again, while
// its first report is still under way.
func reportAtOnce(b *bench) {
	for range 5 {
		j := b.submit(`{}`)
		lease := b.take(b.link())
		var reports sync.WaitGroup
		for range 8 {
			reports.Go(func() {
				if err := lease.succeed(b.ctx, `"mine"`); err != nil {
					b.Error(err)
				}
			})
		}
		reports.Wait()
		if r, err := b.q.Result(b.ctx, j.ID); err != nil || string(r) != `"mine"` {
			b.Errorf("result %s, %v", r, err)
		}
	}
}

func cancelQueued(b *bench) {
	j := b.submit(`{}`)
	got, err := b.q.Cancel(b.ctx, j.ID, "not needed")
	b.must(err)
	if got.State != Cancelled || got.Reason != "not needed" || got.Ended.IsZero() {
		b.Errorf("cancelled as %+v", got)
	}
	b.idle(b.link())
}

func cancelRunning(b *bench) {
	j := b.submit(`{}`)
	lease := b.take(b.link())
	h := lease.hand
	h.a.Cards[0].Job, h.a.Cards[0].Attempt = j.ID, 1
	var orders Orders
	var took time.Duration
	var beat sync.WaitGroup
	beat.Go(func() {
		began := time.Now()
		var err error
		if orders, err = b.q.Heartbeat(b.ctx, "", h.id, h.a, patience); err != nil {
			b.Error(err)
		}
		took = time.Since(began)
	})
	_, err := b.q.Cancel(b.ctx, j.ID, "")
	b.must(err)
	beat.Wait()
	if len(orders.Stop) != 1 || orders.Stop[0] != (Stop{j.ID, 1, true}) || took > patience/2 {
		b.Errorf("after %v the worker is told %+v", took, orders)
	}
	if err := lease.succeed(b.ctx, "{}"); !errors.Is(err, ErrCancelled) {
		b.Errorf("succeeded: %v", err)
	}
	if got := b.get(j.ID); got.State != Cancelled {
		b.Errorf("is %+v", got)
	}
	if next := b.submit(`{}`); next.ID == j.ID {
		b.Error("the cancelled job came back")
	}
}

// cancelAtOnce has changes of a record meet in the engine, which of a cluster
// has another word for it than a single server.
func cancelAtOnce(b *bench) {
	for i := range 5 {
		id := b.submit(fmt.Sprint(i)).ID
		var cancelled atomic.Int64
		var many sync.WaitGroup
		for range 8 {
			many.Go(func() {
				switch _, err := b.q.Cancel(b.ctx, id, "together"); {
				case err == nil:
					cancelled.Add(1)
				case !errors.Is(err, ErrEnded):
					b.Error(err)
				}
			})
		}
		many.Wait()
		if cancelled.Load() == 0 || b.get(id).State != Cancelled {
			b.Errorf("cancelled %d times: %+v", cancelled.Load(), b.get(id))
		}
	}
}

func giveBack(b *bench) {
	j := b.submit(`{}`)
	b.must(b.take(b.link()).giveBack(b.ctx, "drained"))
	if got := b.get(j.ID); got.State != Queued || got.Reason != "drained" || !got.Queued.Equal(j.Queued) {
		b.Errorf("given back as %+v", got)
	}
	if got := b.take(b.link()).job; got.Attempt != 2 || got.Deaths != 0 {
		b.Errorf("taken again as %+v", got)
	}
}

func drain(b *bench) {
	if _, err := b.q.Drain(b.ctx, newID(time.Now()).String()); !errors.Is(err, ErrNoWorker) {
		b.Errorf("drained nobody: %v", err)
	}
	l, other := b.link(), b.link()
	// Both always have a heartbeat under way. One does as it is told.
	beats, stop := context.WithCancel(b.ctx)
	var beating sync.WaitGroup
	defer beating.Wait()
	defer stop()
	beating.Go(func() {
		for beats.Err() == nil {
			if o, err := b.q.Heartbeat(beats, "", l.id, l.a, b.q.Lease()/3); err == nil && o.Drain != nil {
				l.a.Draining = *o.Drain
			}
		}
	})
	beating.Go(func() {
		for beats.Err() == nil {
			if o, err := b.q.Heartbeat(beats, "", other.id, other.a, b.q.Lease()/3); err == nil && o.Drain != nil {
				b.Error("another worker was told, too")
			}
		}
	})
	for range 2 { // telling it again changes nothing
		if w, err := b.q.Drain(b.ctx, l.id); err != nil || w.ID != l.id || !w.Draining {
			b.Fatalf("drained as %+v, %v", w, err)
		}
	}
	if _, err := b.q.Take(b.ctx, l.id, b.card, 0); err == nil {
		b.Error("a worker that drains may take a job")
	}
	if w, err := b.q.Resume(b.ctx, l.id); err != nil || w.Draining {
		b.Fatalf("resumed as %+v, %v", w, err)
	}
	stop()
	beating.Wait()
	if _, err := b.q.Drain(b.ctx, l.id); !errors.Is(err, ErrUnheard) {
		b.Errorf("drained one that does not listen: %v", err)
	}
	// One that has nothing to do may have left before it is seen to drain.
	beating.Go(func() {
		if _, err := b.q.Heartbeat(b.ctx, "", l.id, l.a, patience); err != nil {
			b.Error(err)
		}
		if err := b.q.Leave(b.ctx, l.id); err != nil {
			b.Error(err)
		}
	})
	if w, err := b.q.Drain(b.ctx, l.id); err != nil || !w.Draining {
		b.Errorf("drained as %+v, %v", w, err)
	}
}

// tenAttempts is a job that every worker gives back.
func tenAttempts(b *bench) {
	j := b.submit(`{"drains":true}`)
	for n := range MaxAttempts {
		b.must(b.take(b.link()).giveBack(b.ctx, fmt.Sprintf("drained %d times", n+1)))
	}
	got := b.get(j.ID)
	if got.State != Failed || got.Attempt != MaxAttempts || !strings.Contains(got.Reason, "drained 10 times; 10 attempts came to nothing") {
		b.Errorf("after %d attempts: %+v", MaxAttempts, got)
	}
	b.idle(b.link())
}

// unconfirmedLease is a lease whose answer was lost: its worker never names it.
func unconfirmedLease(b *bench) {
	j := b.submit(`{}`)
	h := b.link()
	b.take(h)
	b.eventually("it is queued again", func() bool {
		_, err := b.q.Heartbeat(b.ctx, "", h.id, h.a, 0)
		b.must(err)
		return b.get(j.ID).State == Queued
	})
	if got := b.take(h).job; got.Attempt != 2 || got.Deaths != 0 {
		b.Errorf("taken again as %+v", got)
	}
}

// leaves is a worker that leaves with a job.
func leaves(b *bench) {
	j := b.submit(`{}`)
	h := b.link()
	b.take(h)
	b.must(b.q.Leave(b.ctx, h.id))
	if got := b.take(b.link()).job; got.ID != j.ID || got.Attempt != 2 || got.Deaths != 0 {
		b.Errorf("taken again as %+v", got)
	}
}

// longPoll waits for a job that is submitted later, with many others that wait.
func longPoll(b *bench) {
	var taken sync.Map
	var waiting sync.WaitGroup
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	for range 8 {
		h := b.link()
		waiting.Go(func() {
			j, err := b.q.Take(ctx, h.id, b.card, patience)
			if err != nil && ctx.Err() == nil {
				b.Error(err)
			}
			if j != nil {
				if _, again := taken.LoadOrStore(j.ID, true); again {
					b.Errorf("%s was leased twice", j.ID)
				}
			}
		})
	}
	one, two := b.submit(`1`), b.submit(`2`)
	b.eventually("both are leased", func() bool {
		return b.get(one.ID).State == Running && b.get(two.ID).State == Running
	})
	stop()
	waiting.Wait()
}

// longReason is an error larger than what the engine takes.
func longReason(b *bench) {
	j := b.submit(`{}`)
	b.must(b.take(b.link()).fail(b.ctx, "it began "+strings.Repeat("é", MaxPayload)+" and ended"))
	got := b.get(j.ID)
	if got.State != Failed || len(got.Reason) > MaxReason || !strings.HasPrefix(got.Reason, "it began") || !strings.HasSuffix(got.Reason, "and ended") || !utf8.ValidString(got.Reason) {
		b.Errorf("failed with %d bytes: %.100s", len(got.Reason), got.Reason)
	}
}

// eventsOnce are events that are sent again because an answer was lost.
func eventsOnce(b *bench) {
	j := b.submit(`{}`)
	lease := b.take(b.link())
	p := Progress{Job: j.ID, Attempt: 1, Events: []json.RawMessage{json.RawMessage("1"), json.RawMessage("2")}}
	for range 3 {
		b.must(b.q.Progress(b.ctx, lease.hand.id, p))
	}
	p.Attempt = 2
	if err := b.q.Progress(b.ctx, lease.hand.id, p); !errors.Is(err, ErrLost) {
		b.Errorf("events of another attempt: %v", err)
	}
	page, err := b.q.Events(b.ctx, j.ID, 0, 10)
	b.must(err)
	if len(page.Events) != 2 {
		b.Errorf("%d events", len(page.Events))
	}
}
