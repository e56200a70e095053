package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {Dir: "x", URL: "nats://y"}, {URL: "nats://127.0.0.1:1"}} {
		if q, err := Open(t.Context(), c); err == nil {
			q.Close()
			t.Errorf("opened %+v", c)
		}
	}
}

// A queue that was closed is found again as it was.
func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data [1]")
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
	var before engine
	if err := before.look(dir); err != nil || len(before.files) == 0 {
		t.Errorf("its files are %v, %v", before.files, err) // which tells whether any were damaged
	}
	q = openEmbedded(t, func(c *Config) { c.Dir = dir })
	page, err := q.List(ctx, Filter{})
	if err != nil || page.Total != 19 {
		t.Fatalf("%+v, %v", page, err)
	}
	l := newHand(ctx, t, q, "t4")
	for _, id := range ids[1:] {
		lease, err := l.take(ctx)
		if err != nil || lease == nil || lease.job.ID != id {
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

// TestNoListener looks for sockets on which this process listens while an engine runs.
func TestNoListener(t *testing.T) {
	q := openEmbedded(t)
	if a := q.engine.Load().server.Addr(); a != nil {
		t.Errorf("the engine listens on %v", a)
	}
	own := make(map[string]bool)
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(files) == 0 {
		t.Skip("NOT TESTED: this machine does not say which sockets a process has")
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && strings.HasPrefix(target, "socket:[") {
			own[strings.Trim(target, "socket:[]")] = true
		}
	}
	const listens, stateColumn, inodeColumn = "0A", 3, 9
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil && (!strings.HasSuffix(table, "tcp6") || !os.IsNotExist(err)) { // of a machine without IPv6
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			f := strings.Fields(string(line))
			if len(f) > inodeColumn && f[stateColumn] == listens && own[f[inodeColumn]] {
				t.Errorf("this process listens: %s", line)
			}
		}
	}
}

// TestUpgrade opens a folder as earlier versions left it: each card has a consumer
// of the queue, which has handed out some of the messages.
func TestUpgrade(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	ids := leaveAsBefore(t, dir)
	q := openEmbedded(t, func(c *Config) { c.Dir, c.Lease = dir, briefLease })
	for names := q.queue.ConsumerNames(ctx); ; {
		name, more := <-names.Name()
		if !more {
			break
		}
		t.Errorf("the consumer %s is still there", name)
	}
	if again, joined, err := q.Submit(ctx, Request{Card: "t4", Payload: json.RawMessage("1")}); err != nil || !joined || again.ID != ids[1] {
		t.Errorf("an equal request is %+v, joined %v, %v", again, joined, err)
	}
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	h := b.link()
	for _, id := range []string{ids[1], ids[2], ids[0]} { // the first ran, and its worker is gone
		lease := b.take(h)
		if lease.job.ID != id {
			t.Errorf("took %+v, want %s", lease.job, id)
		}
		b.must(lease.succeed(ctx, string(lease.job.Payload)))
		mustSucceed(t, q, id)
	}
	waitUntilIdle(t, q)
}

// leaveAsBefore submits three jobs, of which one runs, to an engine with consumers.
func leaveAsBefore(t *testing.T, dir string) (ids []string) {
	t.Helper()
	ctx := t.Context()
	e, err := startEngine(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer e.stop()
	conn, err := nats.Connect("", nats.InProcessServer(e.server))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := createLayout(ctx, js, 1, briefLease)
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, queueStream, jetstream.ConsumerConfig{
		Durable: "card-t4", FilterSubject: subjectOf("t4", "*"), AckPolicy: jetstream.AckExplicitPolicy, AckWait: DefaultLease, MaxDeliver: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r := Request{Card: "t4", Payload: json.RawMessage(fmt.Sprint(i))}
		j := Job{ID: newID(time.Now()).String(), Card: r.Card, Key: keyOf(&r), Payload: r.Payload, State: Queued}
		if i == 0 {
			j.State, j.Attempt, j.Worker, j.Queued = Running, 1, newID(time.Now()).String(), time.Now().UTC()
		}
		data, err := encode(j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.records.Create(ctx, j.ID, data); err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(ctx, subjectOf(j.Card, j.Key), []byte(j.ID)); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, j.ID)
	}
	if m, err := consumer.Next(); err != nil || string(m.Data()) != ids[0] {
		t.Fatalf("the consumer gave %v, %v", m, err)
	}
	return ids
}
