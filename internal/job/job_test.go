package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
)

// testLease is short, so that silence is noticed soon.
const testLease = time.Second

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

func TestLife(t *testing.T) {
	q := openEmbedded(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	j, joined, err := q.Submit(ctx, Request{Card: "a10", Payload: json.RawMessage(`{"model": "bert"}`), Labels: map[string]string{"model": "bert"}})
	if err != nil || joined || j.State != Queued || j.Queued.IsZero() {
		t.Fatalf("submitted %+v, joined %v, %v", j, joined, err)
	}
	same, joined, err := q.Submit(ctx, Request{Card: "a10", Payload: json.RawMessage(`{"model":"bert"}`)})
	if err != nil || !joined || same.ID != j.ID {
		t.Fatalf("submitted again %+v, joined %v, %v", same, joined, err)
	}
	events, err := q.Watch(ctx, j.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := q.Link(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.Take(ctx, "a10")
	if err != nil || lease == nil || lease.Job().ID != j.ID || string(lease.Job().Payload) != `{"model":"bert"}` {
		t.Fatalf("took %+v, %v", lease, err)
	}
	if err := lease.Beat(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := lease.Progress(json.RawMessage(fmt.Sprintf(`{"probe":%d}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := lease.Succeed(ctx, json.RawMessage(`{"optimal_batch_size":92}`)); err != nil {
		t.Fatal(err)
	}
	var said int
	var last *Job
	for e := range events {
		if e.Job != nil {
			last = e.Job
		} else {
			said++
		}
	}
	if said != 3 || last == nil || last.State != Succeeded || last.Ended.Before(last.Started) || last.Started.Before(last.Queued) {
		t.Errorf("saw %d events and at last %+v", said, last)
	}
	result, err := q.Result(ctx, j.ID)
	if err != nil || string(result) != `{"optimal_batch_size":92}` {
		t.Errorf("result %s, %v", result, err)
	}
	page, err := q.List(ctx, Filter{States: []State{Succeeded}, Labels: map[string]string{"model": "bert"}})
	if err != nil || page.Total != 1 || page.Jobs[0].ID != j.ID {
		t.Errorf("listed %+v, %v", page, err)
	}
	if _, err := q.Cancel(ctx, j.ID, "too late"); !errors.Is(err, ErrEnded) {
		t.Errorf("cancelled a job that had ended: %v", err)
	}
	if err := q.Delete(ctx, j.ID); err != nil {
		t.Error(err)
	}
	if _, err := q.Get(ctx, j.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("got a deleted job: %v", err)
	}
}
