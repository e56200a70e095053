package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The cases of workers that die, are cancelled, drain or give back.

func silentWorker(b *bench) {
	j := b.submit(`{}`)
	first := b.take(b.link())
	second := b.take(b.link())
	if got := second.Job(); got.ID != j.ID || got.Attempt != 2 || got.Deaths != 1 || got.Worker == first.Job().Worker {
		b.Errorf("the second worker took %+v", got)
	}
	b.must(second.Succeed(b.ctx, json.RawMessage("{}")))
}

func thirdDeath(b *bench) {
	j := b.submit(`{"poison":true}`)
	for range MaxDeaths {
		b.take(b.link())
	}
	l := b.link()
	b.eventually("the job fails", func() bool {
		if lease, err := l.Take(b.ctx, b.card); err != nil || lease != nil {
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
	b.eventually("it is seen", func() bool { return errors.Is(old.Beat(b.ctx), ErrLost) })
	for name, err := range map[string]error{
		"succeed": old.Succeed(b.ctx, json.RawMessage(`"old"`)),
		"fail":    old.Fail(b.ctx, "old"), "give back": old.GiveBack(b.ctx, "old"),
	} {
		if !errors.Is(err, ErrLost) {
			b.Errorf("the old attempt could %s: %v", name, err)
		}
	}
	b.must(now.Beat(b.ctx))
	b.must(now.Succeed(b.ctx, json.RawMessage(`"new"`)))
	if err := old.Succeed(b.ctx, json.RawMessage(`"old"`)); !errors.Is(err, ErrLost) {
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
		p := report{Job: j.ID, Revision: lease.record.revision, Act: succeeds, Result: json.RawMessage(`"mine"`)}
		var counted atomic.Int32
		var reports sync.WaitGroup
		for range 8 {
			reports.Go(func() {
				if _, err := b.q.receive(b.ctx, lease.link.id, p); err == nil {
					counted.Add(1)
				} else if !errors.Is(err, errChanged) {
					b.Error(err)
				}
			})
		}
		reports.Wait()
		b.must(lease.Drop())
		if n := counted.Load(); n != 1 {
			b.Errorf("it counted %d times", n)
		}
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
	cancelled, stop, err := lease.Cancelled()
	b.must(err)
	defer stop()
	b.must(lease.Beat(b.ctx)) // by then the engine knows of the subscription
	_, err = b.q.Cancel(b.ctx, j.ID, "")
	b.must(err)
	select {
	case <-cancelled:
	case <-b.ctx.Done():
		b.Error("the worker was not told")
	}
	b.eventually("it is seen", func() bool { return errors.Is(lease.Beat(b.ctx), ErrCancelled) })
	if err := lease.Succeed(b.ctx, json.RawMessage("{}")); !errors.Is(err, ErrCancelled) {
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
	b.must(b.take(b.link()).GiveBack(b.ctx, "drained"))
	if got := b.get(j.ID); got.State != Queued || got.Reason != "drained" || !got.Queued.Equal(j.Queued) {
		b.Errorf("given back as %+v", got)
	}
	if got := b.take(b.link()).Job(); got.Attempt != 2 || got.Deaths != 0 {
		b.Errorf("taken again as %+v", got)
	}
}

func drain(b *bench) {
	if _, err := b.q.Drain(b.ctx, newID(time.Now()).String()); !errors.Is(err, ErrNoWorker) {
		b.Errorf("drained nobody: %v", err)
	}
	l, other := b.link(), b.link()
	announce := func(l *Link, draining bool) error {
		return l.Announce(b.ctx, Worker{Cards: []Card{{ID: b.card}}, Draining: draining})
	}
	for _, w := range []*Link{l, other} {
		b.must(announce(w, false))
		b.eventually("it is known", func() bool { _, ok := b.q.fleet.find(w.ID()); return ok })
	}
	stop, err := l.OnDrain(func(drain bool) { _ = announce(l, drain) }) // or Drain says that it was not heard
	b.must(err)
	defer stop()
	stopOther, err := other.OnDrain(func(bool) { b.Error("another worker was told, too") })
	b.must(err)
	defer stopOther()
	for range 2 { // telling it again changes nothing
		if w, err := b.q.Drain(b.ctx, l.ID()); err != nil || w.ID != l.ID() || !w.Draining {
			b.Fatalf("drained as %+v, %v", w, err)
		}
	}
	if w, err := b.q.Resume(b.ctx, l.ID()); err != nil || w.Draining {
		b.Fatalf("resumed as %+v, %v", w, err)
	}
	stop()
	b.must(announce(l, false))
	if _, err := b.q.Drain(b.ctx, l.ID()); !errors.Is(err, ErrUnheard) {
		b.Errorf("drained one that does not listen: %v", err)
	}
	// One that has nothing to do may have left before it is seen to drain.
	leave, err := l.OnDrain(func(bool) { _ = l.Leave(b.ctx) })
	b.must(err)
	defer leave()
	b.must(announce(l, false))
	if w, err := b.q.Drain(b.ctx, l.ID()); err != nil || !w.Draining {
		b.Errorf("drained as %+v, %v", w, err)
	}
}
