package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"memorymark/internal/job"
	"memorymark/internal/server"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/token"
)

const (
	testLease  = 5 * time.Second // longer than a busy machine stands still: tests count attempts
	briefLease = time.Second     // for jobs whose workers die at once
	patience   = 5 * time.Minute // after which a test that waits has failed
)

// task is the payload of tests, which say what should happen to them.
type task struct {
	Do    string `json:"do"` // succeed, fail, die, follow, ignore, wait or panic
	Input int    `json:"input"`
	File  string `json:"file,omitempty"`
}

// perform is the Runner of tests.
func perform(ctx context.Context, payload json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
	var p task
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, err
	}
	progress(json.RawMessage(fmt.Sprintf(`{"began":%d}`, p.Input)))
	switch p.Do {
	case "fail":
		return nil, errors.New("it does not fit")
	case "die":
		os.Exit(1)
	case "panic":
		panic("oh")
	case "wait": // until it is told to stop
		<-ctx.Done()
		return nil, ctx.Err()
	case "follow": // ends when there is a file
		for _, err := os.Stat(p.File); err != nil; _, err = os.Stat(p.File) {
			time.Sleep(10 * time.Millisecond)
		}
	case "ignore": // that it is told to stop
		time.Sleep(10 * patience)
	}
	return json.RawMessage(fmt.Sprintf(`{"output":%d}`, p.Input*p.Input)), nil
}

// until is a Runner that waits for its release.
func until(release <-chan struct{}) Runner {
	return func(ctx context.Context, _ json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
		select {
		case <-release:
			return json.RawMessage("{}"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lab is a server that asks for tokens, and workers that join it.
type lab struct {
	*testing.T
	q     *job.Queue
	ctx   context.Context
	dir   string
	url   string
	token string
	list  *token.List // that the token is on

	serve func(q *job.Queue) // has the server continue with a queue
}

func newLab(t *testing.T) *lab { return newLabFor(t, testLease) }

func newLabFor(t *testing.T, lease time.Duration) *lab {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	dir := t.TempDir()
	q, err := job.Open(ctx, job.Config{Dir: dir, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	l := &lab{T: t, q: q, ctx: ctx, dir: dir}
	opts := server.Options{Jobs: q, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if opts.Snapshots, err = snapshotstore.Open(t.TempDir(), snapshotstore.Options{MaxBytes: 1 << 20, Quota: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	list, err := token.Open(tokens)
	if err != nil {
		t.Fatal(err)
	}
	l.list = list
	if l.token, err = list.Create("rack", token.Worker, time.Now(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if opts.Tokens, err = token.NewKeeper(tokens); err != nil {
		t.Fatal(err)
	}
	var handler atomic.Pointer[server.Server]
	l.serve = func(q *job.Queue) {
		opts.Jobs = q
		s, err := server.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		handler.Store(s)
	}
	l.serve(q)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().ServeHTTP(w, r) }))
	t.Cleanup(h.CloseClientConnections)
	l.url = h.URL
	return l
}

func (l *lab) submit(p task) *job.Job {
	l.Helper()
	payload, err := json.Marshal(p)
	if err != nil {
		l.Fatal(err)
	}
	j, _, err := l.q.Submit(l.ctx, job.Request{Card: "t4", Payload: payload})
	if err != nil {
		l.Fatal(err)
	}
	return j
}

// join makes a worker of the lab's fleet, by way of an address.
func (l *lab) join(url string, c Config) *Worker {
	l.Helper()
	if c.Slots == nil {
		c.Slots = []Slot{{Card: job.Card{ID: "t4"}, Run: perform}}
	}
	c.Log = slog.New(slog.NewTextHandler(l.Output(), nil))
	w, err := Join(l.ctx, &Client{URL: url, Token: l.token, HTTP: &http.Client{Transport: &http.Transport{}}}, c)
	if err != nil {
		l.Fatal(err)
	}
	return w
}

// start runs a worker with one card until the test ends or the returned
// function is called, which waits and returns what Run returned.
func (l *lab) start(url string, c Config) (stop func() error) {
	l.Helper()
	w := l.join(url, c)
	ctx, cancel := context.WithCancel(l.ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	l.Cleanup(func() { stop() })
	return stop
}

// reach waits until a job is in a state.
func (l *lab) reach(id string, s job.State) *job.Job {
	l.Helper()
	for {
		j, err := l.q.Get(l.ctx, id)
		if err != nil {
			l.Fatalf("job %s is not %s: %v", id, s, err)
		}
		if j.State == s {
			return j
		}
		if j.State.Ended() {
			l.Fatalf("job %s is %s, not %s: %s", id, j.State, s, j.Reason)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitListed waits until the server has heard of a worker, which may take a job
// before.
func (l *lab) awaitListed(id string) {
	l.Helper()
	for !slices.ContainsFunc(l.q.Workers(), func(w job.Worker) bool { return w.ID == id }) {
		if l.ctx.Err() != nil {
			l.Fatalf("worker %s is not listed", id)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// works waits until a worker says that it works on a job, which is a moment after
// it was leased.
func (l *lab) works(id string) *job.Job {
	l.Helper()
	j := l.reach(id, job.Running)
	for !slices.ContainsFunc(l.q.Workers(), func(w job.Worker) bool { return slices.Contains(w.Jobs, id) }) {
		if l.ctx.Err() != nil {
			l.Fatalf("no worker says that it has job %s", id)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return j
}

func (l *lab) result(id string) string {
	l.Helper()
	r, err := l.q.Result(l.ctx, id)
	if err != nil {
		l.Fatal(err)
	}
	return string(r)
}

func TestReports(t *testing.T) {
	l := newLab(t)
	l.start(l.url, Config{Host: "rack-1", Version: "v1"})
	j := l.reach(l.submit(task{Do: "succeed", Input: 7}).ID, job.Succeeded)
	if got := l.result(j.ID); got != `{"output":49}` {
		t.Errorf("result %s", got)
	}
	if j := l.reach(l.submit(task{Do: "fail"}).ID, job.Failed); j.Reason != "it does not fit" {
		t.Errorf("failed because %q", j.Reason)
	}
	if j := l.reach(l.submit(task{Do: "panic"}).ID, job.Failed); !strings.Contains(j.Reason, "bug: oh") {
		t.Errorf("failed because %q", j.Reason)
	}
	workers := l.q.Workers()
	if len(workers) != 1 || workers[0].Host != "rack-1" || workers[0].Cards[0].ID != "t4" {
		t.Errorf("workers: %+v", workers)
	}
}

// One job at a time for each card, and cards of their own for each.
func TestOneAtATime(t *testing.T) {
	l := newLab(t)
	var busy [2]atomic.Int32
	slot := func(card string, n int) Slot {
		return Slot{Card: job.Card{ID: card}, Run: func(context.Context, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
			if busy[n].Add(1) > 1 {
				return nil, errors.New("two jobs on one card")
			}
			defer busy[n].Add(-1)
			time.Sleep(20 * time.Millisecond)
			return json.RawMessage("{}"), nil
		}}
	}
	var ids []string
	for i := range 20 {
		card := []string{"t4", "a10", job.Any}[i%3]
		j, _, err := l.q.Submit(l.ctx, job.Request{Card: card, Payload: json.RawMessage(fmt.Sprint(i))})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, j.ID)
	}
	l.start(l.url, Config{Slots: []Slot{slot("t4", 0), slot("a10", 1)}})
	for _, id := range ids {
		l.reach(id, job.Succeeded)
	}
}

func TestCancelWhileRunning(t *testing.T) {
	l := newLab(t)
	l.start(l.url, Config{})
	id := l.submit(task{Do: "wait"}).ID
	l.reach(id, job.Running)
	if _, err := l.q.Cancel(l.ctx, id, "changed my mind"); err != nil {
		t.Fatal(err)
	}
	// The card is free again, and the job stays cancelled.
	l.reach(l.submit(task{Do: "succeed"}).ID, job.Succeeded)
	if j, err := l.q.Get(l.ctx, id); err != nil || j.State != job.Cancelled || j.Reason != "changed my mind" {
		t.Errorf("%+v, %v", j, err)
	}
}

// A worker that is told to end lets its job end if that is soon enough, and
// takes no other.
func TestDrainWaits(t *testing.T) {
	l := newLab(t)
	release := make(chan struct{})
	stop := l.start(l.url, Config{Drain: patience, Slots: []Slot{{Card: job.Card{ID: "t4"}, Run: until(release)}}})
	first := l.submit(task{Input: 1}).ID
	l.works(first)
	second := l.submit(task{Input: 2}).ID
	ended := make(chan error)
	go func() { ended <- stop() }()
	for workers := l.q.Workers(); len(workers) == 0 || !workers[0].Draining; workers = l.q.Workers() {
		time.Sleep(10 * time.Millisecond)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	l.reach(first, job.Succeeded)
	if j, err := l.q.Get(l.ctx, second); err != nil || j.State != job.Queued {
		t.Errorf("the second job: %+v, %v", j, err)
	}
}

// A server drains a worker: its job may take its time, it takes no other, and
// leaves when it has none.
func TestDrainedByServer(t *testing.T) {
	l := newLab(t)
	release, ended := make(chan struct{}), make(chan error, 1)
	slot := Slot{Card: job.Card{ID: "t4"}, Run: until(release)}
	w := l.join(l.url, Config{Slots: []Slot{slot, slot}})
	go func() { ended <- w.Run(l.ctx) }()
	first := l.submit(task{Input: 1}).ID
	id := l.works(first).Worker
	if w, err := l.q.Drain(l.ctx, id); err != nil || !w.Draining || w.Resident {
		t.Fatalf("drained as %+v, %v", w, err)
	}
	second := l.submit(task{Input: 2}).ID
	// It can be resumed while it works, with all its cards.
	if w, err := l.q.Resume(l.ctx, id); err != nil || w.Draining {
		t.Fatalf("resumed as %+v, %v", w, err)
	}
	l.works(second)
	if _, err := l.q.Drain(l.ctx, id); err != nil {
		t.Fatal(err)
	}
	third := l.submit(task{Input: 3}).ID
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	l.reach(first, job.Succeeded)
	l.reach(second, job.Succeeded)
	if j, err := l.q.Get(l.ctx, third); err != nil || j.State != job.Queued || j.Attempt != 0 {
		t.Errorf("the third job: %+v, %v", j, err)
	}
	if _, err := l.q.Resume(l.ctx, id); !errors.Is(err, job.ErrNoWorker) {
		t.Errorf("resumed one that left: %v", err)
	}
}

// The server's own worker stays when it is drained.
func TestResidentIsDrained(t *testing.T) {
	l := newLab(t)
	l.start(l.url, Config{Resident: true})
	id := l.reach(l.submit(task{Do: "succeed", Input: 1}).ID, job.Succeeded).Worker
	l.awaitListed(id)
	if w, err := l.q.Drain(l.ctx, id); err != nil || !w.Draining || !w.Resident {
		t.Fatalf("drained as %+v, %v", w, err)
	}
	stop := l.start(l.url, Config{})
	for i := range 20 { // which it could have taken as well as the other
		if j := l.reach(l.submit(task{Do: "succeed", Input: 2 + i}).ID, job.Succeeded); j.Worker == id {
			t.Fatalf("drained, it took %+v", j)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.q.Resume(l.ctx, id); err != nil {
		t.Fatal(err)
	}
	if j := l.reach(l.submit(task{Do: "succeed"}).ID, job.Succeeded); j.Worker != id {
		t.Errorf("done by %s", j.Worker)
	}
}

// One whose job does not end gives it back, and that is no death.
func TestDrainGivesBack(t *testing.T) {
	l := newLab(t)
	stop := l.start(l.url, Config{Drain: 50 * time.Millisecond})
	id := l.submit(task{Do: "wait"}).ID
	l.works(id)
	if err := stop(); err != nil {
		t.Error(err)
	}
	j := l.reach(id, job.Queued)
	if j.Deaths != 0 || j.Attempt != 1 || !strings.Contains(j.Reason, "told to stop") {
		t.Errorf("given back as %+v", j)
	}
	for len(l.q.Workers()) != 0 { // it took leave, so no one waits for its silence
		if l.ctx.Err() != nil {
			t.Fatal("the worker is still listed")
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.start(l.url, Config{})
	if j := l.reach(id, job.Running); j.Attempt != 2 || j.Deaths != 0 {
		t.Errorf("taken again as %+v", j)
	}
}

func TestTooLong(t *testing.T) {
	l := newLab(t)
	l.start(l.url, Config{Limit: 100 * time.Millisecond})
	if j := l.reach(l.submit(task{Do: "wait"}).ID, job.Failed); !strings.Contains(j.Reason, "stopped after 100ms") {
		t.Errorf("failed because %q", j.Reason)
	}
}

// A job that does not even stop when told to is reported, and the worker
// ends, because its card is not free.
func TestHang(t *testing.T) {
	l := newLab(t)
	ended := make(chan error, 1)
	w := l.join(l.url, Config{Limit: 100 * time.Millisecond, Slots: []Slot{{Card: job.Card{ID: "t4"}, Run: perform}}})
	w.stop = 100 * time.Millisecond
	go func() { ended <- w.Run(l.ctx) }()
	id := l.submit(task{Do: "ignore"}).ID
	l.reach(id, job.Failed)
	var stuck *StuckError
	if err := <-ended; !errors.As(err, &stuck) || stuck.Job != id {
		t.Errorf("ended with %v", err)
	}
}

// Two workers on one card: the one that was silent for too long finishes, too,
// but its result does not count.
func TestTwoWorkersOneCard(t *testing.T) {
	l := newLab(t)
	id := l.submit(task{Do: "succeed", Input: 3}).ID
	client := &Client{URL: l.url, Token: l.token}
	m, err := client.Join(l.ctx, job.Announcement{Cards: []job.Card{{ID: "t4"}}})
	if err != nil {
		t.Fatal(err)
	}
	silent, err := client.Take(l.ctx, m.ID, "t4", 0)
	if err != nil || silent == nil || silent.ID != id {
		t.Fatalf("took %v, %v", silent, err)
	}
	l.start(l.url, Config{})
	l.reach(id, job.Succeeded)
	for _, e := range []job.Ending{
		{To: job.Succeeded, Result: json.RawMessage(`{"output":"old"}`)}, {To: job.Failed, Reason: "no"}, {To: job.Queued},
	} {
		e.Job, e.Attempt = id, silent.Attempt
		if err := client.End(l.ctx, m.ID, e); !errors.Is(err, job.ErrLost) {
			t.Errorf("the silent worker reported %s: %v", e.To, err)
		}
	}
	j, err := l.q.Get(l.ctx, id)
	if err != nil || j.State != job.Succeeded || j.Attempt != 2 || j.Deaths != 1 || l.result(id) != `{"output":9}` {
		t.Errorf("%+v, %v, result %s", j, err, l.result(id))
	}
}
