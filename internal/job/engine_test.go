package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const testToken = "let me in"

func openForWorkers(t *testing.T) *Queue {
	t.Helper()
	return openEmbedded(t, func(c *Config) {
		c.Listen = "127.0.0.1:0"
		c.Authorize = func(token string) bool { return token == testToken }
	})
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {Dir: "x", URL: "nats://y"}, {URL: "nats://y", Listen: ":1"}, {Dir: t.TempDir(), Listen: "nonsense"}} {
		if q, err := Open(t.Context(), c); err == nil {
			q.Close()
			t.Errorf("opened %+v", c)
		}
	}
}

// A queue that was closed is found again as it was.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	q, err := Open(ctx, Config{Dir: dir, Lease: testLease})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range 20 {
		j, _, err := q.Submit(ctx, Request{Card: "t4", Payload: json.RawMessage(fmt.Sprint(i)), Labels: map[string]string{"n": fmt.Sprint(i % 3)}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, j.ID)
	}
	if _, err := q.Cancel(ctx, ids[0], ""); err != nil {
		t.Fatal(err)
	}
	if err := q.Delete(ctx, ids[0]); err != nil {
		t.Fatal(err)
	}
	q.Close()
	q = openEmbedded(t, func(c *Config) { c.Dir = dir })
	page, err := q.List(ctx, Filter{})
	if err != nil || page.Total != 19 {
		t.Fatalf("%+v, %v", page, err)
	}
	l, err := q.Link(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[1:] {
		lease, err := l.Take(ctx, "t4")
		if err != nil || lease == nil || lease.Job().ID != id {
			t.Fatalf("took %+v, %v, want %s", lease, err, id)
		}
	}
}

// TestFull fills a queue whose limit is lowered first.
func TestFull(t *testing.T) {
	q := openEmbedded(t)
	info, err := q.queue.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info.Config.MaxMsgs = 2
	if _, err := q.js.UpdateStream(t.Context(), info.Config); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_, _, err := q.Submit(t.Context(), Request{Card: "t4", Payload: json.RawMessage(fmt.Sprint(i))})
		if full := errors.Is(err, ErrFull); full != (i == 2) || !full && err != nil {
			t.Errorf("job %d: %v", i, err)
		}
	}
	if page, err := q.List(t.Context(), Filter{}); err != nil || page.Total != 2 {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestListGone lists while the index has yet to hear that a job is gone, as
// after one that a full queue refused.
func TestListGone(t *testing.T) {
	q := openEmbedded(t)
	j, _, err := q.Submit(t.Context(), Request{Card: "t4", Payload: json.RawMessage("1")})
	if err != nil {
		t.Fatal(err)
	}
	gone := record{Job: *j}
	gone.ID = newID(q.now()).String()
	q.index.put(gone)
	if page, err := q.List(t.Context(), Filter{}); err != nil || page.Total != 1 || len(page.Jobs) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

// Workers come by HTTP, through one port that is also the server's.
func TestJoinByHTTP(t *testing.T) {
	q := openForWorkers(t)
	mux := http.NewServeMux()
	mux.Handle("GET "+WorkerPath, q.Handler())
	s := httptest.NewServer(mux)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := Join(ctx, JoinConfig{URL: s.URL, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Lease() != testLease {
		t.Errorf("the lease is %v", l.Lease())
	}
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	j := b.submit(`{}`)
	b.must(b.take(l).Succeed(ctx, json.RawMessage("1")))
	if got := b.get(j.ID); got.State != Succeeded {
		t.Errorf("%+v", got)
	}
}

func TestJoinRefused(t *testing.T) {
	q := openForWorkers(t)
	address := "nats://" + q.ListenAddr().String()
	for name, c := range map[string]JoinConfig{
		"no token": {URL: address}, "wrong token": {URL: address, Token: "x"},
		"no scheme": {URL: "host:5001"}, "nobody there": {URL: "nats://127.0.0.1:1", Token: testToken},
	} {
		if l, err := Join(t.Context(), c); err == nil {
			l.Close()
			t.Errorf("%s: joined", name)
		}
	}
	for _, user := range []string{"", ownerName, "worker-", "worker-*", "worker-x.>", workerName + strings.Repeat("0", 25) + ">"} {
		if conn, err := nats.Connect(address, nats.UserInfo(user, testToken)); err == nil {
			conn.Close()
			t.Errorf("%q came in with a worker's token", user)
		}
	}
	closed := openEmbedded(t)
	answer := httptest.NewRecorder()
	closed.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, WorkerPath, nil))
	if answer.Code != http.StatusNotFound {
		t.Errorf("a queue that lets nobody in answers %d", answer.Code)
	}
}

// TestWorkerRights tries, with a worker's connection, what a worker must not.
func TestWorkerRights(t *testing.T) {
	q := openForWorkers(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	j := b.submit(`{}`)
	l, err := Join(ctx, JoinConfig{URL: "nats://" + q.ListenAddr().String(), Token: testToken})
	b.must(err)
	defer l.Close()
	var refused atomic.Int64
	l.conn.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			refused.Add(1)
		}
	})
	brief := func(f func(context.Context) error) func() error {
		return func() error {
			ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			return f(ctx)
		}
	}
	other := newID(time.Now()).String()
	for name, try := range map[string]func() error{
		"submit a job": brief(func(ctx context.Context) error {
			_, err := l.js.Publish(ctx, subjectOf("t4", "k"), []byte(j.ID))
			return err
		}),
		"delete the queue":   brief(func(ctx context.Context) error { return l.js.DeleteStream(ctx, queueStream) }),
		"delete the history": brief(func(ctx context.Context) error { return l.js.DeleteKeyValue(ctx, recordBucket) }),
		"list the streams": brief(func(ctx context.Context) error {
			names := l.js.StreamNames(ctx)
			for range names.Name() { //nolint:revive // only the error matters
			}
			return names.Err()
		}),
		"read the history": brief(func(ctx context.Context) error {
			_, err := l.records.Keys(ctx)
			return err
		}),
		"read a record by number": brief(func(ctx context.Context) error {
			_, err := l.conn.RequestWithContext(ctx, "$JS.API.DIRECT.GET.KV_"+recordBucket, []byte(`{"seq":1}`))
			return err
		}),
		"read a result": brief(func(ctx context.Context) error {
			_, err := l.conn.RequestWithContext(ctx, "$JS.API.DIRECT.GET.KV_"+resultBucket+".$KV."+resultBucket+"."+resultKey(j.ID, 1), nil)
			return err
		}),
		"read events": brief(func(ctx context.Context) error {
			_, err := l.js.OrderedConsumer(ctx, eventStream, jetstream.OrderedConsumerConfig{})
			return err
		}),
		"submit a job by its record": brief(func(ctx context.Context) error {
			_, err := l.records.Create(ctx, other, []byte(`{"id":"`+other+`","card":"t4","key":"k","payload":{},"state":"queued"}`))
			return err
		}),
		"change a record": brief(func(ctx context.Context) error { _, err := l.records.PutString(ctx, j.ID, `{}`); return err }),
		"delete a job":    brief(func(ctx context.Context) error { return l.records.Purge(ctx, j.ID) }),
		"store a result": brief(func(ctx context.Context) error {
			_, err := l.js.Publish(ctx, "$KV."+resultBucket+"."+resultKey(j.ID, 1), []byte("1"))
			return err
		}),
		"report for another worker": brief(func(ctx context.Context) error {
			_, err := l.conn.RequestWithContext(ctx, reportSubject+other, []byte(`{}`))
			return err
		}),
		"hear of every job":         func() error { return hear(l, queueSubject+">") },
		"hear others cancelled":     func() error { return hear(l, cancelSubject+"*") },
		"hear others' reports":      func() error { return hear(l, reportSubject+"*") },
		"make a consumer":           brief(func(ctx context.Context) error { return createConsumer(ctx, l.js, "l4", testLease) }),
		"speak for another worker":  brief(func(ctx context.Context) error { _, err := l.workers.PutString(ctx, other, "{}"); return err }),
		"cancel a job by message":   brief(func(ctx context.Context) error { return l.conn.Publish(cancelSubject+other, []byte(j.ID)) }),
		"drain another worker":      brief(func(ctx context.Context) error { return l.conn.Publish(drainSubject+other, []byte(drainWord)) }),
		"hear others drained":       func() error { return hear(l, drainSubject+"*") },
		"hear others' answers":      func() error { return hear(l, inboxOf(other)+".>") },
		"hear everything":           func() error { return hear(l, ">") },
		"hear all events":           func() error { return hear(l, eventSubject+"*") },
		"hear the engine's matters": func() error { return hear(l, "$SYS.>") },
	} {
		before := refused.Load()
		err := try()
		b.must(l.conn.FlushWithContext(ctx))
		b.eventually(name+" is refused", func() bool { return refused.Load() > before })
		if err == nil && !slices.Contains([]string{"hear", "cancel", "drain"}, strings.Fields(name)[0]) { // which are refused later
			t.Errorf("a worker could %s", name)
		}
	}
	if got := b.get(j.ID); got.State != Queued {
		t.Errorf("the job is %+v", got)
	}
	b.must(b.take(l).Succeed(ctx, json.RawMessage("1"))) // what a worker must be able to do
}

func hear(l *Link, subject string) error {
	_, err := l.conn.Subscribe(subject, func(*nats.Msg) {})
	return err
}

// TestRevokedWorkersLeave takes a worker's token away: its connection ends, which
// is looked after several times in a second, and does not come back, and
// another's stays.
func TestRevokedWorkersLeave(t *testing.T) {
	var revoked atomic.Bool
	q := openEmbedded(t, func(c *Config) {
		c.Listen = "127.0.0.1:0"
		c.Authorize = func(token string) bool { return token == testToken || token == "other" && !revoked.Load() }
	})
	join := func(token string) *Link {
		l, err := Join(t.Context(), JoinConfig{URL: "nats://" + q.ListenAddr().String(), Token: token})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	stays, goes := join(testToken), join("other")
	time.Sleep(2 * evictEvery)
	if !goes.conn.IsConnected() {
		t.Error("it leaves by itself")
	}
	revoked.Store(true)
	for begin := time.Now(); goes.conn.IsConnected(); time.Sleep(evictEvery) {
		if time.Since(begin) > patience {
			t.Fatal("it is still there")
		}
	}
	if evictEvery > time.Second/2 {
		t.Errorf("a token can be of use for %v", evictEvery)
	}
	time.Sleep(time.Second) // it tries to come back
	if goes.conn.IsConnected() || !stays.conn.IsConnected() {
		t.Errorf("back: %v, the other there: %v", goes.conn.IsConnected(), stays.conn.IsConnected())
	}
}

// TestWorkersReportOnlyTheirOwn has a worker report what is not its to report.
func TestWorkersReportOnlyTheirOwn(t *testing.T) {
	q := openForWorkers(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	join := func() *Link {
		l, err := Join(ctx, JoinConfig{URL: "nats://" + q.ListenAddr().String(), Token: testToken})
		b.must(err)
		t.Cleanup(l.Close)
		return l
	}
	honest, other := join(), join()
	j := b.submit(`1`)
	lease := b.take(honest)
	b.must(honest.Announce(ctx, Worker{Jobs: []string{j.ID}}))
	b.eventually("it is heard of", func() bool { return q.fleet.holds(honest.ID(), j.ID) })
	running, err := q.get(ctx, j.ID)
	b.must(err)
	for _, p := range []report{
		{Act: succeeds, Result: json.RawMessage("2")},
		{Act: fails, Reason: "no"},
		{Act: givesBack},
		{Act: takes},
		{Act: overdue},
		{Act: "cancel"},
		{Act: ""},
		{Act: succeeds, Result: json.RawMessage("no JSON")},
	} {
		p.Job, p.Revision = j.ID, running.revision
		if _, err := other.report(ctx, p); err == nil {
			t.Errorf("another worker can %s", p.Act)
		}
	}
	if _, err := other.report(ctx, report{Job: newID(time.Now()).String(), Act: takes}); err == nil {
		t.Error("a job was made up")
	}
	if got := b.get(j.ID); got.State != Running || got.Worker != honest.ID() {
		t.Errorf("%+v", got)
	}
	b.must(lease.Succeed(ctx, json.RawMessage("1")))
	if result, err := q.Result(ctx, j.ID); err != nil || string(result) != "1" {
		t.Errorf("%s, %v", result, err)
	}
	if _, err := honest.report(ctx, report{Job: j.ID, Revision: b.revision(j.ID), Act: succeeds, Result: json.RawMessage("3")}); err == nil {
		t.Error("a result can be changed after the end")
	}
}

func (b *bench) revision(id string) uint64 {
	b.Helper()
	r, err := b.q.get(b.ctx, id)
	b.must(err)
	return r.revision
}

// TestNobodyPassesForAnother has the holder of one token come with the name of a
// worker that has another.
func TestNobodyPassesForAnother(t *testing.T) {
	q := openEmbedded(t, func(c *Config) {
		c.Listen = "127.0.0.1:0"
		c.Authorize = func(token string) bool { return token == testToken || token == "other" }
	})
	address := "nats://" + q.ListenAddr().String()
	l, err := Join(t.Context(), JoinConfig{URL: address, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if conn, err := nats.Connect(address, nats.UserInfo(workerName+l.ID(), "other")); err == nil {
		conn.Close()
		t.Error("it came in by another's name")
	}
	if conn, err := nats.Connect(address, nats.UserInfo(workerName+l.ID(), testToken)); err != nil {
		t.Errorf("it cannot come in by its own: %v", err)
	} else {
		conn.Close()
	}
}

// TestWorkersFlood has a worker say far more than a job has to: what is kept
// stays within its bounds, and others are served.
func TestWorkersFlood(t *testing.T) {
	q := openForWorkers(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	l, err := Join(ctx, JoinConfig{URL: "nats://" + q.ListenAddr().String(), Token: testToken})
	b.must(err)
	defer l.Close()
	j := b.submit(`1`)
	for i := range 3 * maxEvents {
		b.must(l.conn.Publish(eventSubject+j.ID, []byte("1")))
		if i%100 == 0 {
			b.must(l.conn.PublishMsg(&nats.Msg{Subject: eventSubject + j.ID, Data: make([]byte, 2*MaxEvent)}))
		}
	}
	b.must(l.conn.FlushWithContext(ctx))
	b.submit(`2`) // which is refused after answerTime
	info, err := q.events.Info(ctx)
	b.must(err)
	if info.State.Msgs > maxEvents || info.State.Bytes > 200*maxEvents {
		t.Errorf("%d events of %d bytes are kept", info.State.Msgs, info.State.Bytes)
	}
	for i := range 2 * maxSubscriptions { // more than any worker needs
		if _, err := l.conn.Subscribe(fmt.Sprintf("%s.%d", inboxOf(l.ID()), i), func(*nats.Msg) {}); err != nil {
			return
		}
	}
	b.must(l.conn.FlushWithContext(ctx))
	b.eventually("subscriptions are bounded", func() bool {
		return errors.Is(l.conn.LastError(), nats.ErrMaxSubscriptionsExceeded) || l.conn.LastError() != nil
	})
}

// Who comes as a worker and shows no token does not keep a connection, also by
// saying nothing more.
func TestStrangersAreSentAway(t *testing.T) {
	q := openForWorkers(t)
	gone := make(chan struct{})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		q.Handler().ServeHTTP(w, r)
	}))
	defer h.Close()
	c, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); err != nil || !strings.Contains(string(answer), "101 Switching Protocols") { // until the engine has had enough
		t.Fatalf("%q, %v", answer, err)
	}
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Error("its connection stays")
	}
}
