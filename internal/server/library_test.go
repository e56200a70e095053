package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"memorymark/internal/recording"
)

// An upload is read while it arrives: nothing is read from the store for it.
func TestReadOnArrival(t *testing.T) {
	c := start(t)
	c.s.library.reading <- struct{}{} // whoever wants to read from the store waits
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/snapshots", strings.NewReader(string(recorded(t))))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Error(answer.Status)
	}
}

// While one upload is read as it arrives, another is read from the store.
func TestTwoArrivals(t *testing.T) {
	c := start(t)
	slow := c.s.library.arrive(-1)
	_, _ = slow.Write(recorded(t)[:100])
	snap := into[Snapshot](t, c.post("/v1/snapshots", string(recorded(t))), http.StatusCreated)
	if len(snap.Devices) != 1 {
		t.Errorf("%+v", snap)
	}
	slow.end(context.Canceled)
	slow.keep(t.Context(), snap.ID[1:]+"0")
	if _, ok := c.s.library.books.get(snap.ID[1:] + "0"); ok {
		t.Error("half a snapshot was kept")
	}
	c.s.library.receiving <- struct{}{} // the next one may be received
}

// What no one looks at leaves the memory, and comes back when it is asked for.
func TestLetGo(t *testing.T) {
	c := start(t)
	l := c.s.library
	first := into[Snapshot](t, c.post("/v1/snapshots", string(recorded(t))), http.StatusCreated)
	second := into[Snapshot](t, c.post("/v1/predictions/snapshot", small), http.StatusCreated)
	held := func() int64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.books.held
	}
	both := held()
	if n := l.letGo(time.Now()); n != 0 || held() != both {
		t.Errorf("%d were let go at once", n)
	}
	l.mu.Lock()
	b, _ := l.books.oldest()
	b.used = b.used.Add(-2 * unseenTime)
	l.mu.Unlock()
	if b.id != first.ID {
		t.Fatalf("%s was looked at before %s", b.id, first.ID)
	}
	if n := l.letGo(time.Now()); n != 1 || held() != both-b.cost {
		t.Errorf("%d were let go, %d bytes are held of %d", n, held(), both)
	}
	for _, id := range []string{first.ID, second.ID} {
		into[recording.Top](t, c.get("/v1/snapshots/"+id+"/top"), http.StatusOK)
	}
	if n := l.letGo(time.Now().Add(2 * unseenTime)); n != 2 || held() != 0 {
		t.Errorf("%d were let go after another look at both, %d bytes are held", n, held())
	}
}
