package job

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// killsVariable says how often TestKill kills; "make endurance" sets it.
const killsVariable = "MEMORYMARK_KILLS"

// beServer is the process of a server that is killed: it submits jobs and
// prints the id of each that was accepted. It does not return.
func beServer(config string) {
	dir, address, _ := strings.Cut(config, " ")
	q, err := Open(context.Background(), Config{
		Dir: dir, Listen: address, Lease: briefLease,
		Authorize: func(token string) bool { return token == testToken },
	})
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	for range 4 {
		go func() {
			for {
				j, _, err := q.Submit(context.Background(), Request{Card: "t4", Payload: json.RawMessage(strconv.FormatUint(rand.Uint64(), 10))})
				if err != nil {
					panic(err)
				}
				mu.Lock()
				fmt.Println(j.ID)
				mu.Unlock()
			}
		}()
	}
	select {}
}

// TestKill kills a server again and again while it accepts jobs and workers do
// them. Nothing that was accepted is lost or done twice, and nothing is stuck.
func TestKill(t *testing.T) {
	kills := 4
	if v := os.Getenv(killsVariable); v != "" {
		var err error
		if kills, err = strconv.Atoi(v); err != nil {
			t.Fatalf("%s: %v", killsVariable, err)
		}
	}
	dir := t.TempDir()
	address := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])
	accepted := killedServer(t, dir, address, 1) // so that workers can join
	done := &tally{succeeded: make(map[string]int)}
	var workers sync.WaitGroup
	working, stopWorking := context.WithCancel(t.Context())
	defer stopWorking()
	for range 2 {
		workers.Go(func() { done.work(working, t, address) })
	}
	for range kills {
		accepted = append(accepted, killedServer(t, dir, address, 5+rand.IntN(200))...)
	}

	q := openEmbedded(t, func(c *Config) {
		c.Dir, c.Listen, c.Lease, c.Authorize = dir, address, briefLease, func(token string) bool { return token == testToken }
	})
	for _, id := range accepted {
		mustSucceed(t, q, id)
	}
	waitUntilIdle(t, q)
	stopWorking()
	workers.Wait()
	done.check(t, accepted)
	if !t.Failed() {
		t.Logf("the server was killed %d times: %d jobs were accepted, all are done, none twice", kills, len(accepted))
	}
}

// killedServer runs a server until it has accepted so many jobs, kills it in
// the midst of the next ones, and returns all that it accepted.
func killedServer(t *testing.T, dir, address string, jobs int) (accepted []string) {
	t.Helper()
	s := self(t, serverVariable+"="+dir+" "+address)
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, ok := parseID(lines.Text()); ok { // the last line may be cut
			accepted = append(accepted, lines.Text())
		}
		if len(accepted) == jobs {
			s.Process.Kill()
		}
	}
	s.Wait()
	if len(accepted) < jobs {
		t.Fatalf("the server ended by itself after %d jobs", len(accepted))
	}
	return accepted
}

// waitUntilIdle waits until every job has ended, also those that were being
// submitted when their server was killed.
func waitUntilIdle(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		stats, err := q.Stats(ctx)
		if err != nil {
			t.Fatalf("jobs are stuck: %+v, %v", stats, err)
		}
		if stats.ByState[Queued]+stats.ByState[Running] == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for { // acknowledgements that got lost are mended when their leases have run out
		info, err := q.queue.Info(ctx)
		if err == nil && info.State.Msgs == 0 {
			return
		}
		if err := errors.Join(err, q.repair(ctx)); err != nil {
			t.Fatalf("messages are left of jobs that have ended: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// tally counts how often workers were told that a job succeeded.
type tally struct {
	mu        sync.Mutex
	succeeded map[string]int
}

func (y *tally) work(ctx context.Context, t *testing.T, address string) {
	var l *Link
	for l == nil { // the server may just be dead
		var err error
		if l, err = Join(ctx, JoinConfig{URL: "nats://" + address, Token: testToken}); err != nil {
			l = nil
			time.Sleep(20 * time.Millisecond)
		}
		if ctx.Err() != nil {
			t.Error("could not join")
			return
		}
	}
	defer l.Close()
	for ctx.Err() == nil {
		lease, err := l.Take(ctx, "t4")
		if err != nil || lease == nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		reporting, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		if lease.Succeed(reporting, lease.Job().Payload) == nil {
			y.mu.Lock()
			y.succeeded[lease.Job().ID]++
			y.mu.Unlock()
		}
		cancel()
	}
}

func (y *tally) check(t *testing.T, accepted []string) {
	t.Helper()
	for _, id := range accepted {
		// None is possible: the worker's server was killed before it answered.
		if n := y.succeeded[id]; n > 1 {
			t.Errorf("job %s succeeded %d times", id, n)
		}
	}
}
