package job

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// enduranceVariable says how long "make endurance" takes, of which one node and
// three take a third each; the rest is package cli's.
const enduranceVariable = "MEMORYMARK_ENDURANCE"

// endurance is that third, or another time if one is given.
func endurance(t *testing.T, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(enduranceVariable)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", enduranceVariable, err)
	}
	return d / 3
}

// inFull is the first number, or the second in the short form that "make test" runs.
func inFull(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}

// TestHistory kills, stops and cuts off one node after the other, of one and of
// three, while servers submit jobs and workers do them. Then it looks at all
// that was said and seen: every job that was accepted is done once, with its
// own result, and no record was ever seen to go back.
func TestHistory(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			wire := newNetwork()
			c, url := wiredCluster(t, wire, nodes)
			h := &chronicle{accepted: make(map[string]string), succeeded: make(map[string]int)}
			servers := []*Queue{h.server(t, url), h.server(t, url)}
			working, stopWorking := context.WithCancel(t.Context())
			defer stopWorking()
			var running sync.WaitGroup
			loading, stopLoading := context.WithTimeout(working, endurance(t, time.Duration(inFull(15, 3))*time.Second))
			defer stopLoading()
			for i, q := range servers {
				running.Go(func() { h.submit(loading, q, i) })
				running.Go(func() { h.work(working, q) })
			}
			tried := harm(loading, t, c, wire)
			c.recover(t)
			h.settle(t, servers[0])
			stopWorking()
			running.Wait()
			h.check(t)
			if !t.Failed() {
				t.Logf("of %d nodes, one at a time was killed (%d times), stopped (%d) or cut off (%d): %d jobs were accepted, all are done, none twice; %d were refused; none of %d observed changes went back",
					nodes, tried["killed"], tried["stopped"], tried["cut off"], len(h.accepted), h.refused, h.changes)
			}
		})
	}
}

// wiredCluster starts nodes that are only reached by a wire, and says how.
func wiredCluster(t *testing.T, wire *network, nodes int) (cluster, string) {
	t.Helper()
	ports, dir := freePorts(t, 2*nodes), t.TempDir()
	var c cluster
	var routes, urls []string
	for i := range nodes {
		n := &node{Name: fmt.Sprintf("n%d", i), Port: ports[i], Route: ports[nodes+i]}
		n.Dir = filepath.Join(dir, n.Name)
		n.ForClients = wire.wire(t, n.Name, fmt.Sprintf("127.0.0.1:%d", n.Port))
		n.ForNodes = wire.wire(t, n.Name, fmt.Sprintf("127.0.0.1:%d", n.Route))
		routes, urls = append(routes, "nats://"+n.ForNodes), append(urls, "nats://"+n.ForClients)
		c = append(c, n)
	}
	for _, n := range c {
		if nodes > 1 {
			n.Routes = routes
		}
		n.start(t)
		t.Cleanup(func() { n.end(os.Kill) })
	}
	c.recover(t)
	return c, strings.Join(urls, ",")
}

// recover waits until all is well again.
func (c cluster) recover(t *testing.T) {
	t.Helper()
	if len(c) > 1 {
		c.wait(t)
		return
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c[0].Port))
		if err == nil {
			conn.Close()
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("the node does not get well: %v", err)
		}
	}
}

// harm harms one node at a time until the context ends, and says how often in
// which way. It ends with nothing lost.
func harm(ctx context.Context, t *testing.T, c cluster, wire *network) map[string]int {
	t.Helper()
	tried := make(map[string]int)
	for pause(ctx, time.Second) {
		n := c[rand.IntN(len(c))]
		length := time.Duration(1+rand.IntN(4000)) * time.Millisecond // shorter and longer than a lease
		switch rand.IntN(3) {
		case 0:
			tried["killed"]++
			n.end(os.Kill)
			pause(ctx, length/4)
			n.start(t)
		case 1:
			tried["stopped"]++
			n.process.Process.Signal(syscall.SIGSTOP)
			pause(ctx, length)
			n.process.Process.Signal(syscall.SIGCONT)
		case 2:
			tried["cut off"]++
			wire.isolate(n.Name)
			pause(ctx, length)
			wire.isolate("")
		}
		c.recover(t)
	}
	return tried
}

// pause waits, and reports whether the context has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// chronicle is what servers and workers were told, and what a server saw of the
// records.
type chronicle struct {
	mu        sync.Mutex
	accepted  map[string]string // payloads by id
	refused   int
	succeeded map[string]int      // how often a worker was told that its result counts
	seen      []map[string]record // the last of each job, by each server
	changes   int
	wrong     []string
}

// server opens a queue and follows all its records.
func (h *chronicle) server(t *testing.T, url string) *Queue {
	t.Helper()
	q, err := Open(t.Context(), Config{URL: url, Lease: briefLease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	watcher, err := q.records.WatchAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]record) // by this server: another may be behind
	h.seen = append(h.seen, seen)
	go func() {
		for entry := range watcher.Updates() {
			if entry == nil || len(entry.Value()) == 0 {
				continue
			}
			r, err := decodeRecord(entry.Value(), entry.Revision(), entry.Created())
			h.mu.Lock()
			if err != nil {
				h.complain("%v", err)
			} else {
				h.see(seen, r)
			}
			h.mu.Unlock()
		}
	}()
	return q
}

// complain notes what is wrong; h.mu is held.
func (h *chronicle) complain(format string, args ...any) {
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

// place is how far a record is: attempts follow each other, and in each a job
// runs, and then waits for the next one or has ended.
func place(r record) int {
	switch r.State {
	case Running:
		return 3 * r.Attempt
	case Queued:
		return 3*r.Attempt + 1
	default:
		return 3*r.Attempt + 2
	}
}

// see notes a change of a record, which must be a step forward; h.mu is held.
func (h *chronicle) see(seen map[string]record, r record) {
	before, known := seen[r.ID]
	seen[r.ID] = r
	h.changes++
	switch {
	case !known || before.revision == r.revision:
	case before.revision > r.revision:
		h.complain("%s: revision %d was seen after %d", r.ID, r.revision, before.revision)
	case before.State.Ended() && before.State != r.State:
		h.complain("%s was %s and is %s", r.ID, before.State, r.State)
	case place(r) < place(before):
		h.complain("%s was %s in attempt %d, then %s in attempt %d", r.ID, before.State, before.Attempt, r.State, r.Attempt)
	}
}

func (h *chronicle) submit(ctx context.Context, q *Queue, server int) {
	for i := 0; ctx.Err() == nil; i++ {
		payload := fmt.Sprintf("[%d,%d]", server, i)
		j, joined, err := q.Submit(ctx, Request{Card: "t4", Payload: json.RawMessage(payload)})
		h.mu.Lock()
		switch _, again := h.accepted[idOf(j)]; {
		case err != nil:
			h.refused++
		case joined || again:
			h.complain("%s was accepted as %s, which is another job", payload, j.ID)
		default:
			h.accepted[j.ID] = payload
		}
		h.mu.Unlock()
		pause(ctx, 5*time.Millisecond)
	}
}

func idOf(j *Job) string {
	if j == nil {
		return ""
	}
	return j.ID
}

func (h *chronicle) work(ctx context.Context, q *Queue) {
	var link *hand
	for link == nil {
		var err error
		if link, err = joinHand(ctx, q, "t4"); err != nil && !pause(ctx, 50*time.Millisecond) {
			return
		}
	}
	for ctx.Err() == nil {
		lease, err := link.take(ctx)
		if err != nil || lease == nil {
			pause(ctx, 10*time.Millisecond)
			continue
		}
		reporting, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		if lease.succeed(reporting, string(lease.job.Payload)) == nil {
			h.mu.Lock()
			h.succeeded[lease.job.ID]++
			h.mu.Unlock()
		}
		cancel()
	}
}

// settle waits until every job that was accepted is done, with its own result.
func (h *chronicle) settle(t *testing.T, q *Queue) {
	t.Helper()
	h.mu.Lock()
	accepted := maps.Clone(h.accepted)
	h.mu.Unlock()
	if len(accepted) == 0 {
		t.Fatal("nothing was accepted")
	}
	for id, payload := range accepted {
		mustSucceed(t, q, id)
		if j, err := q.Get(t.Context(), id); err != nil || string(j.Payload) != payload {
			t.Errorf("%s was accepted as %s and is %+v, %v", id, payload, j, err)
		}
	}
	waitUntilIdle(t, q)
	for began := time.Now(); !h.sawAll(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("a server does not hear how its jobs ended")
		}
	}
}

// sawAll reports whether every server has seen the end of every job.
func (h *chronicle) sawAll() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.accepted {
		for _, seen := range h.seen {
			if !seen[id].State.Ended() {
				return false
			}
		}
	}
	return true
}

func (h *chronicle) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, n := range h.succeeded {
		if n > 1 {
			t.Errorf("job %s succeeded %d times", id, n)
		}
	}
	for _, wrong := range h.wrong {
		t.Error(wrong)
	}
}

// TestHistoryChecker has the checker look at histories that are wrong.
func TestHistoryChecker(t *testing.T) {
	at := func(state State, attempt int, revision uint64) record {
		return record{Job: Job{ID: "x", State: state, Attempt: attempt}, revision: revision}
	}
	for name, c := range map[string]struct {
		records []record
		wrong   bool
	}{
		"a life":        {[]record{at(Queued, 0, 1), at(Running, 1, 2), at(Queued, 1, 3), at(Running, 2, 4), at(Succeeded, 2, 5)}, false},
		"some missed":   {[]record{at(Queued, 0, 1), at(Succeeded, 3, 9)}, false},
		"seen again":    {[]record{at(Running, 1, 2), at(Running, 1, 2)}, false},
		"revived":       {[]record{at(Succeeded, 1, 2), at(Queued, 1, 3)}, true},
		"another end":   {[]record{at(Succeeded, 1, 2), at(Failed, 1, 3)}, true},
		"an old one":    {[]record{at(Running, 2, 5), at(Queued, 1, 3)}, true},
		"queued anew":   {[]record{at(Running, 2, 2), at(Queued, 0, 3)}, true},
		"attempts back": {[]record{at(Running, 2, 2), at(Running, 1, 3)}, true},
	} {
		h, seen := &chronicle{}, make(map[string]record)
		for _, r := range c.records {
			h.see(seen, r)
		}
		if (len(h.wrong) > 0) != c.wrong {
			t.Errorf("%s: %q", name, h.wrong)
		}
	}
}
