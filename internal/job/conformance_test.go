package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// testLease is short, so that silence is noticed soon.
const testLease = time.Second

// patience is after how long a test that waits has failed.
const patience = time.Minute

// conformance is what every engine must do. Each case has a card of its own,
// so that all can run on one engine at the same time.
var conformance = []struct {
	name string
	run  func(*bench)
}{
	{"a job lives from submission to deletion", wholeLife},
	{"equal requests share a job while it lasts", equalRequests},
	{"equal requests at the same time share a job", equalAtOnce},
	{"jobs are taken in the order of submission", inOrder},
	{"bad requests are refused", badRequests},
	{"a silent worker's job goes to another", silentWorker},
	{"the third silent worker fails the job", thirdDeath},
	{"an attempt that was given up changes nothing", fencing},
	{"a queued job is cancelled", cancelQueued},
	{"a running job is cancelled", cancelRunning},
	{"many cancel a job at the same time", cancelAtOnce},
	{"a job that is given back is taken at once", giveBack},
	{"a worker is drained and resumed", drain},
	{"events replay from a number", replay},
	{"a watcher misses nothing", watchLive},
	{"events of an attempt that was given up do not mix in", watchAttempts},
	{"lists filter and page", lists},
	{"a record without a message gets one", repairRecord},
	{"a message without a job goes away", repairMessage},
	{"a record that lost against an equal one goes away", repairOrphan},
	{"the queue holds one message for a key", oneMessage},
}

// exercise runs the suite.
func exercise(t *testing.T, q *Queue) {
	for i, c := range conformance {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c.run(&bench{T: t, ctx: ctx, q: q, card: fmt.Sprintf("card-%d", i)})
		})
	}
}

func TestConformanceEmbedded(t *testing.T) { exercise(t, openEmbedded(t)) }

func openEmbedded(t testing.TB, change ...func(*Config)) *Queue {
	t.Helper()
	c := Config{Dir: t.TempDir(), Lease: testLease}
	for _, f := range change {
		f(&c)
	}
	q, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

// bench is where a case works.
type bench struct {
	*testing.T
	ctx  context.Context
	q    *Queue
	card string
}

func (b *bench) submit(payload string) *Job {
	b.Helper()
	j, joined, err := b.q.Submit(b.ctx, Request{Card: b.card, Payload: json.RawMessage(payload)})
	if err != nil || joined {
		b.Fatalf("submit %s: joined %v, %v", payload, joined, err)
	}
	return j
}

func (b *bench) link() *Link {
	b.Helper()
	l, err := b.q.Link(b.ctx)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// take waits for a job.
func (b *bench) take(l *Link) *Lease {
	b.Helper()
	for {
		lease, err := l.Take(b.ctx, b.card)
		if err != nil {
			b.Fatal(err)
		}
		if lease != nil {
			return lease
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// idle fails if there is a job to take.
func (b *bench) idle(l *Link) {
	b.Helper()
	if lease, err := l.Take(b.ctx, b.card); err != nil || lease != nil {
		b.Fatalf("took %+v, %v; there should be none", lease, err)
	}
}

func (b *bench) get(id string) *Job {
	b.Helper()
	j, err := b.q.Get(b.ctx, id)
	if err != nil {
		b.Fatal(err)
	}
	return j
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// eventually waits until something holds.
func (b *bench) eventually(what string, holds func() bool) {
	b.Helper()
	for !holds() {
		if b.ctx.Err() != nil {
			b.Fatalf("never happened: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func wholeLife(b *bench) {
	j, _, err := b.q.Submit(b.ctx, Request{Card: b.card, Payload: json.RawMessage(`{"model": "bert"}`), Labels: map[string]string{"life": "whole"}})
	b.must(err)
	if j.State != Queued || j.Queued.IsZero() || !j.Started.IsZero() {
		b.Errorf("submitted %+v", j)
	}
	events, err := b.q.Watch(b.ctx, j.ID, 0)
	b.must(err)
	lease := b.take(b.link())
	if got := lease.Job(); got.ID != j.ID || string(got.Payload) != `{"model":"bert"}` || got.Attempt != 1 {
		b.Fatalf("took %+v", got)
	}
	b.must(lease.Beat(b.ctx))
	for i := range 3 {
		b.must(lease.Progress(json.RawMessage(fmt.Sprintf(`{"probe":%d}`, i))))
	}
	if _, err := b.q.Result(b.ctx, j.ID); !errors.Is(err, ErrNoResult) {
		b.Errorf("result of a running job: %v", err)
	}
	if err := b.q.Delete(b.ctx, j.ID); !errors.Is(err, ErrActive) {
		b.Errorf("deleted a running job: %v", err)
	}
	b.must(lease.Succeed(b.ctx, json.RawMessage(`{"optimal_batch_size":92}`)))
	said, last := collect(events)
	if !slices.Equal(said, []string{`{"probe":0}`, `{"probe":1}`, `{"probe":2}`}) || last == nil || last.State != Succeeded {
		b.Errorf("saw %v and at last %+v", said, last)
	}
	if last.Queued.After(last.Started) || last.Started.After(last.Ended) || last.Started.IsZero() {
		b.Errorf("queued %v, started %v, ended %v", last.Queued, last.Started, last.Ended)
	}
	if result, err := b.q.Result(b.ctx, j.ID); err != nil || string(result) != `{"optimal_batch_size":92}` {
		b.Errorf("result %s, %v", result, err)
	}
	if ended, err := b.q.Wait(b.ctx, j.ID); err != nil || ended.State != Succeeded {
		b.Errorf("waited for %+v, %v", ended, err)
	}
	if _, err := b.q.Cancel(b.ctx, j.ID, "too late"); !errors.Is(err, ErrEnded) {
		b.Errorf("cancelled a job that had ended: %v", err)
	}
	b.must(b.q.Delete(b.ctx, j.ID))
	if _, err := b.q.Get(b.ctx, j.ID); !errors.Is(err, ErrNotFound) {
		b.Errorf("got a deleted job: %v", err)
	}
	if page, err := b.q.List(b.ctx, Filter{Cards: []string{b.card}}); err != nil || page.Total != 0 {
		b.Errorf("listed a deleted job: %+v, %v", page, err)
	}
}

// collect reads events to their end.
func collect(events <-chan Event) (said []string, last *Job) {
	for e := range events {
		if e.Job != nil {
			last = e.Job
		} else {
			said = append(said, string(e.Data))
		}
	}
	return said, last
}

func equalRequests(b *bench) {
	first := b.submit(`{"model":"gpt2"}`)
	again, joined, err := b.q.Submit(b.ctx, Request{Card: b.card, Payload: json.RawMessage(`{ "model": "gpt2" }`)})
	if err != nil || !joined || again.ID != first.ID {
		b.Errorf("while it waits: %+v, joined %v, %v", again, joined, err)
	}
	lease := b.take(b.link())
	again, joined, err = b.q.Submit(b.ctx, Request{Card: b.card, Payload: json.RawMessage(`{"model":"gpt2"}`)})
	if err != nil || !joined || again.ID != first.ID || again.State != Running {
		b.Errorf("while it runs: %+v, joined %v, %v", again, joined, err)
	}
	other, joined, err := b.q.Submit(b.ctx, Request{Card: b.card, Payload: json.RawMessage(`{"model":"gpt2"}`), Key: "another run, please"})
	if err != nil || joined || other.ID == first.ID {
		b.Errorf("with a key of its own: %+v, joined %v, %v", other, joined, err)
	}
	b.must(lease.Succeed(b.ctx, json.RawMessage("1")))
	if next := b.submit(`{"model":"gpt2"}`); next.ID == first.ID {
		b.Errorf("after its end, the old job came back")
	}
}

func equalAtOnce(b *bench) {
	ids := make([]string, 16)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			j, _, err := b.q.Submit(b.ctx, Request{Card: b.card, Payload: json.RawMessage(`{}`)})
			if err != nil {
				b.Error(err)
				return
			}
			ids[i] = j.ID
		})
	}
	all.Wait()
	if distinct := slices.Compact(slices.Sorted(slices.Values(ids))); len(distinct) != 1 {
		b.Errorf("%d jobs for one request", len(distinct))
	}
	b.eventually("one record", func() bool {
		page, err := b.q.List(b.ctx, Filter{Cards: []string{b.card}})
		return err == nil && page.Total == 1
	})
}

func inOrder(b *bench) {
	var want []string
	for i := range 5 {
		want = append(want, b.submit(fmt.Sprint(i)).ID)
	}
	l := b.link()
	for _, id := range want {
		lease := b.take(l)
		if got := lease.Job().ID; got != id {
			b.Errorf("took %s, want %s", got, id)
		}
		b.must(lease.Succeed(b.ctx, json.RawMessage("{}")))
	}
	b.idle(l)
}

func badRequests(b *bench) {
	for _, r := range []Request{
		{Card: "", Payload: json.RawMessage("{}")},
		{Card: "a.b", Payload: json.RawMessage("{}")},
		{Card: "*", Payload: json.RawMessage("{}")},
		{Card: "a10>", Payload: json.RawMessage("{}")},
		{Card: "a10", Payload: json.RawMessage("{")},
		{Card: "a10"},
		{Card: "a10", Payload: json.RawMessage(`"` + strings.Repeat("x", MaxPayload) + `"`)},
		{Card: "a10", Payload: json.RawMessage("{}"), Labels: map[string]string{"": "x"}},
	} {
		var invalid *InvalidError
		if _, _, err := b.q.Submit(b.ctx, r); !errors.As(err, &invalid) {
			b.Errorf("submitted %.60v: %v", r, err)
		}
	}
	for _, id := range []string{"", "x", "*", ">", strings.Repeat("0", 25) + "*", strings.Repeat("Z", 26)} {
		if _, err := b.q.Get(b.ctx, id); !errors.Is(err, ErrNotFound) {
			b.Errorf("got %q: %v", id, err)
		}
		if _, err := b.q.Watch(b.ctx, id, 0); !errors.Is(err, ErrNotFound) {
			b.Errorf("watched %q: %v", id, err)
		}
		if err := b.q.Delete(b.ctx, id); !errors.Is(err, ErrNotFound) {
			b.Errorf("deleted %q: %v", id, err)
		}
	}
}

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

func replay(b *bench) {
	j := b.submit(`{}`)
	lease := b.take(b.link())
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprint(i))
		b.must(lease.Progress(json.RawMessage(want[i])))
	}
	b.must(lease.Succeed(b.ctx, json.RawMessage("{}")))
	for from := range 11 {
		var seq uint64
		if from > 0 {
			seq = nthSeq(b, j.ID, from)
		}
		events, err := b.q.Watch(b.ctx, j.ID, seq)
		b.must(err)
		said, last := collect(events)
		if !slices.Equal(said, want[from:]) || last == nil || last.State != Succeeded {
			b.Errorf("from %d: %v, then %+v", from, said, last)
		}
	}
}

// nthSeq returns the number of a job's nth event.
func nthSeq(b *bench, id string, n int) uint64 {
	b.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	events, err := b.q.Watch(ctx, id, 0)
	b.must(err)
	for e := range events {
		if e.Job != nil {
			continue
		}
		if n--; n == 0 {
			return e.Seq
		}
	}
	b.Fatal("too few events")
	return 0
}

func watchLive(b *bench) {
	j := b.submit(`{}`)
	const n = 50
	var watchers sync.WaitGroup
	for range 5 {
		events, err := b.q.Watch(b.ctx, j.ID, 0)
		b.must(err)
		watchers.Go(func() {
			said, last := collect(events)
			if len(said) != n || !slices.IsSortedFunc(said, func(x, y string) int { return len(x) - len(y) }) || last == nil || last.State != Failed {
				b.Errorf("saw %d events and %+v", len(said), last)
			}
		})
	}
	lease := b.take(b.link())
	for i := range n {
		b.must(lease.Progress(json.RawMessage(fmt.Sprintf(`"%*d"`, i+2, i))))
	}
	b.must(lease.Fail(b.ctx, "no luck"))
	watchers.Wait()
}

func watchAttempts(b *bench) {
	j := b.submit(`{}`)
	old := b.take(b.link())
	b.must(old.Progress(json.RawMessage(`"old 1"`)))
	now := b.take(b.link())
	b.must(now.Progress(json.RawMessage(`"new 1"`)))
	now.pending.Wait()
	b.must(old.Progress(json.RawMessage(`"old 2"`)))
	old.pending.Wait()
	b.must(now.Progress(json.RawMessage(`"new 2"`)))
	b.must(now.Succeed(b.ctx, json.RawMessage("{}")))
	events, err := b.q.Watch(b.ctx, j.ID, 0)
	b.must(err)
	if said, _ := collect(events); !slices.Equal(said, []string{`"old 1"`, `"new 1"`, `"new 2"`}) {
		b.Errorf("saw %v", said)
	}
}

func lists(b *bench) {
	var ids []string
	for i := range 7 {
		model := []string{"Bert", "gpt2"}[i%2]
		j, _, err := b.q.Submit(b.ctx, Request{
			Card: b.card, Payload: json.RawMessage(fmt.Sprint(i)), Labels: map[string]string{"model": model, "precision": "fp32"},
		})
		b.must(err)
		ids = append(ids, j.ID)
		time.Sleep(2 * time.Millisecond)
	}
	_, err := b.q.Cancel(b.ctx, ids[3], "")
	b.must(err)
	slices.Reverse(ids) // newest first: 6 5 4 3 2 1 0
	third := b.get(ids[4]).Queued
	for name, c := range map[string]struct {
		f    Filter
		want []string
	}{
		"all":          {Filter{}, ids},
		"a state":      {Filter{States: []State{Cancelled}}, ids[3:4]},
		"states":       {Filter{States: []State{Cancelled, Queued}}, ids},
		"a label":      {Filter{Labels: map[string]string{"model": "gpt2"}}, []string{ids[1], ids[3], ids[5]}},
		"labels":       {Filter{Labels: map[string]string{"model": "gpt2", "precision": "bf16"}}, nil},
		"text":         {Filter{Text: "BERT"}, []string{ids[0], ids[2], ids[4], ids[6]}},
		"other text":   {Filter{Text: "llama"}, nil},
		"since":        {Filter{Since: third}, ids[:5]},
		"until":        {Filter{Until: third}, ids[5:]},
		"label, state": {Filter{Labels: map[string]string{"model": "gpt2"}, States: []State{Queued}}, []string{ids[1], ids[5]}},
	} {
		c.f.Cards = []string{b.card}
		for _, limit := range []int{0, 1, 2, 3} {
			c.f.Limit, c.f.After = limit, ""
			var got []string
			for {
				page, err := b.q.List(b.ctx, c.f)
				b.must(err)
				if page.Total != len(c.want) {
					b.Errorf("%s: total %d, want %d", name, page.Total, len(c.want))
				}
				for _, j := range page.Jobs {
					got = append(got, j.ID)
				}
				if c.f.After = page.Next; page.Next == "" {
					break
				}
			}
			if !slices.Equal(got, c.want) {
				b.Errorf("%s by %d: %v, want %v", name, limit, got, c.want)
			}
		}
	}
	if _, err := b.q.List(b.ctx, Filter{After: "*"}); err == nil {
		b.Error("listed after *")
	}
}

// repairRecord is a crash between the record and its message.
func repairRecord(b *bench) {
	b.must(b.q.openCard(b.ctx, b.card))
	j := Job{ID: newID(time.Now()).String(), Card: b.card, Key: "k", Payload: json.RawMessage("{}"), State: Queued}
	data, err := encode(j)
	b.must(err)
	_, err = b.q.records.Create(b.ctx, j.ID, data)
	b.must(err)
	b.eventually("it is known", func() bool {
		return slices.ContainsFunc(b.q.index.unfinished(), func(r record) bool { return r.ID == j.ID })
	})
	b.must(b.q.repair(b.ctx))
	b.must(b.q.repair(b.ctx))
	l := b.link()
	lease := b.take(l)
	if lease.Job().ID != j.ID {
		b.Errorf("took %+v", lease.Job())
	}
	b.idle(l)
	b.must(lease.Succeed(b.ctx, json.RawMessage("{}")))
}

// repairMessage is a job that was deleted while its message was on its way.
func repairMessage(b *bench) {
	b.must(b.q.openCard(b.ctx, b.card))
	_, err := b.q.js.Publish(b.ctx, subjectOf(b.card, "k"), []byte(newID(time.Now()).String()))
	b.must(err)
	b.must(b.q.repair(b.ctx))
	if m, err := lastMessage(b.ctx, b.q.conn, queueStream, subjectOf(b.card, "k")); !errors.Is(err, ErrNotFound) {
		b.Errorf("still there: %+v, %v", m, err)
	}
}

// repairOrphan is a crash of a Submit that lost against an equal one.
func repairOrphan(b *bench) {
	j := b.submit(`{}`)
	loser := *j
	loser.ID, loser.Queued = newID(time.Now()).String(), time.Time{}
	data, err := encode(loser)
	b.must(err)
	_, err = b.q.records.Create(b.ctx, loser.ID, data)
	b.must(err)
	b.must(b.q.requeue(b.ctx, loser.ID))
	if _, err := b.q.Get(b.ctx, loser.ID); !errors.Is(err, ErrNotFound) {
		b.Errorf("still there: %v", err)
	}
	if got := b.take(b.link()).Job(); got.ID != j.ID {
		b.Errorf("took %+v", got)
	}
}

func oneMessage(b *bench) {
	j := b.submit(`{}`)
	b.must(b.q.enqueue(b.ctx, *j))
	other := *j
	other.ID = newID(time.Now()).String()
	if err := b.q.enqueue(b.ctx, other); !errors.Is(err, errQueued) {
		b.Errorf("published an equal job: %v", err)
	}
}
