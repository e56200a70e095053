package job

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkOpen is how long a server takes until it accepts jobs, with an
// empty folder and with one that has been used.
func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{"empty", "used"} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			for b.Loop() {
				if name == "empty" {
					b.StopTimer()
					dir = b.TempDir()
					b.StartTimer()
				}
				q, err := Open(b.Context(), Config{Dir: dir})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				q.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkSubmit is one job accepted: a record and a message, both synced.
func BenchmarkSubmit(b *testing.B) {
	q := openEmbedded(b)
	var n atomic.Int64
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			submitOne(b, q, n.Add(1))
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	})
	b.Run("many", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				submitOne(b, q, n.Add(1))
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	})
	b.Run("equal", func(b *testing.B) {
		for b.Loop() {
			submitOne(b, q, 1)
		}
	})
}

func submitOne(b *testing.B, q *Queue, n int64) {
	if _, _, err := q.Submit(b.Context(), Request{Card: "t4", Payload: json.RawMessage(fmt.Sprint(n))}); err != nil {
		b.Error(err)
	}
}

// BenchmarkLife is a whole job: submitted, taken, one event, result, end.
func BenchmarkLife(b *testing.B) {
	q := openEmbedded(b)
	l := newHand(b.Context(), b, q, "t4")
	for i := 0; b.Loop(); i++ {
		submitOne(b, q, int64(i))
		lease, err := l.take(b.Context())
		if err != nil || lease == nil {
			b.Fatal(lease, err)
		}
		if err := lease.say(b.Context(), "{}"); err != nil {
			b.Fatal(err)
		}
		if err := lease.succeed(b.Context(), "{}"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWatch is what an idle watcher costs.
func BenchmarkWatch(b *testing.B) {
	q := openEmbedded(b)
	j, _, err := q.Submit(b.Context(), Request{Card: "t4", Payload: json.RawMessage("1")})
	if err != nil {
		b.Fatal(err)
	}
	const watchers = 500
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		before := heap()
		for range watchers {
			events, err := q.Watch(ctx, j.ID, 0)
			if err != nil {
				b.Fatal(err)
			}
			<-events
		}
		b.ReportMetric((heap()-before)/watchers, "B/watcher")
		cancel()
	}
}

// heap is what is in use, stacks included.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

// million is how many jobs the history of BenchmarkMillion has.
const million = 1_000_000

// BenchmarkMillion lists and filters a history of a million jobs, from its
// files to a page of 50. Making that history takes
// a minute or two.
func BenchmarkMillion(b *testing.B) {
	dir := b.TempDir()
	fill(b, dir)
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			before := heap()
			q := openLoaded(b, dir)
			b.ReportMetric((heap()-before)/1e6, "MB")
			q.Close()
		}
	})
	q := openLoaded(b, dir)
	b.Cleanup(q.Close)
	middle := q.index.rows[million/2]
	for _, c := range []struct {
		name string
		f    Filter
	}{
		{"newest", Filter{}},
		{"failed", Filter{States: []State{Failed}}},
		{"model", Filter{Labels: map[string]string{"model": "model-7"}}},
		{"text", Filter{Text: "EL-7"}},
		{"nothing", Filter{Text: "no such model"}},
		{"month", Filter{Since: time.UnixMicro(middle.queued), Cards: []string{"card-3"}, States: []State{Succeeded, Failed}}},
		{"far", Filter{After: middle.id.String(), Cards: []string{"card-3"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := q.List(b.Context(), c.f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func openLoaded(b *testing.B, dir string) *Queue {
	b.Helper()
	q, err := Open(b.Context(), Config{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	if err := q.index.wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	return q
}

// fill makes a history of a million jobs, as fast as the engine stores them.
func fill(b *testing.B, dir string) {
	b.Helper()
	c, err := Config{Dir: dir, unsynced: true}.withDefaults()
	if err != nil {
		b.Fatal(err)
	}
	e, err := startEngine(c, func(string) {})
	if err != nil {
		b.Fatal(err)
	}
	defer e.stop()
	conn, err := nats.Connect("", nats.InProcessServer(e.server))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(1000))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := createLayout(b.Context(), js, 1, c.Lease); err != nil {
		b.Fatal(err)
	}
	payload := json.RawMessage(`{"engine":"measured","workload":{"model":"bert","batch":16,"sequence":128,"precision":"amp-bf16","optimizer":"adamw"},"gpu":"a10"}`)
	for i := range million {
		at := time.UnixMilli(int64(1_700_000_000_000 + i*1000)).UTC()
		j := Job{
			ID: newID(at).String(), Card: fmt.Sprintf("card-%d", i%40), Key: fmt.Sprintf("%032d", i), Payload: payload,
			Labels: map[string]string{"model": fmt.Sprintf("model-%d", i%60), "precision": []string{"fp32", "bf16"}[i%2], "engine": "measured"},
			State:  []State{Succeeded, Succeeded, Succeeded, Failed, Cancelled}[i%5], Attempt: 1, Queued: at, Started: at,
		}
		data, err := encode(j)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := js.PublishAsync("$KV."+recordBucket+"."+j.ID, data, jetstream.WithStallWait(patience)); err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
}
