package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// testLease is short, so that silence is noticed soon, and longer than a busy
// machine stands still: tests count attempts. briefLease is for those that do not.
const (
	testLease  = 5 * time.Second
	briefLease = time.Second
)

// patience is after how long a test that waits has failed.
const patience = 5 * time.Minute

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
	{"a result that is reported twice at once stays", reportAtOnce},
	{"a queued job is cancelled", cancelQueued},
	{"a running job is cancelled", cancelRunning},
	{"many cancel a job at the same time", cancelAtOnce},
	{"a job that is given back is taken at once", giveBack},
	{"a job that is always given back fails", tenAttempts},
	{"a lease whose answer was lost is found", unconfirmedLease},
	{"a worker that leaves gives its jobs back", leaves},
	{"a worker waits for a job", longPoll},
	{"a long reason is cut", longReason},
	{"events that are sent again are stored once", eventsOnce},
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

func (b *bench) link() *hand {
	b.Helper()
	return newHand(b.ctx, b, b.q, b.card)
}

// take waits for a job.
func (b *bench) take(l *hand) *held {
	b.Helper()
	for {
		lease, err := l.take(b.ctx)
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
func (b *bench) idle(l *hand) {
	b.Helper()
	if lease, err := l.take(b.ctx); err != nil || lease != nil {
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
	if got := lease.job; got.ID != j.ID || string(got.Payload) != `{"model":"bert"}` || got.Attempt != 1 {
		b.Fatalf("took %+v", got)
	}
	b.must(lease.beat(b.ctx))
	for i := range 3 {
		b.must(lease.say(b.ctx, fmt.Sprintf(`{"probe":%d}`, i)))
	}
	if _, err := b.q.Result(b.ctx, j.ID); !errors.Is(err, ErrNoResult) {
		b.Errorf("result of a running job: %v", err)
	}
	if err := b.q.Delete(b.ctx, j.ID); !errors.Is(err, ErrActive) {
		b.Errorf("deleted a running job: %v", err)
	}
	b.must(lease.succeed(b.ctx, `{"optimal_batch_size":92}`))
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
func collect(events <-chan WatchEvent) (said []string, last *Job) {
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
	b.must(lease.succeed(b.ctx, "1"))
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
		if got := lease.job.ID; got != id {
			b.Errorf("took %s, want %s", got, id)
		}
		b.must(lease.succeed(b.ctx, "{}"))
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

// repairRecord is a crash between the record and its message.
func repairRecord(b *bench) {
	j := Job{ID: newID(time.Now()).String(), Card: b.card, Key: "k", Payload: json.RawMessage("{}"), State: Queued}
	data, err := encode(j)
	b.must(err)
	_, err = b.q.records.Create(b.ctx, j.ID, data)
	b.must(err)
	b.eventually("it is known", func() bool {
		return slices.ContainsFunc(b.q.index.unfinished(Queued), func(r record) bool { return r.ID == j.ID })
	})
	b.must(b.q.repair(b.ctx))
	b.must(b.q.repair(b.ctx))
	l := b.link()
	lease := b.take(l)
	if lease.job.ID != j.ID {
		b.Errorf("took %+v", lease.job)
	}
	b.idle(l)
	b.must(lease.succeed(b.ctx, "{}"))
}

// repairMessage is a job that was deleted while its message was on its way.
func repairMessage(b *bench) {
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
	if got := b.take(b.link()).job; got.ID != j.ID {
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
