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

// beServer is the process of a server that is killed: it submits jobs, does some of
// them, and prints the id of each that was accepted, and of each whose result was.
// It does not return.
func beServer(dir string) {
	ctx := context.Background()
	q, err := Open(ctx, Config{Dir: dir, Lease: briefLease})
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	say := func(word, id string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(word, id)
	}
	for range 4 {
		go func() {
			for {
				j, _, err := q.Submit(ctx, Request{Card: "t4", Payload: json.RawMessage(strconv.FormatUint(rand.Uint64(), 10))})
				if err != nil {
					panic(err)
				}
				say(acceptedWord, j.ID)
			}
		}()
	}
	for range 2 {
		go work(ctx, q, func(id string) { say(succeededWord, id) })
	}
	select {}
}

// What the process prints, before a job's id.
const (
	acceptedWord  = "accepted"
	succeededWord = "succeeded"
)

// work does jobs until the context ends, and says which have succeeded.
func work(ctx context.Context, q *Queue, succeeded func(id string)) {
	h, err := joinHand(ctx, q, "t4")
	if err != nil {
		panic(err)
	}
	for ctx.Err() == nil {
		j, err := q.Take(ctx, h.id, "t4", time.Second)
		if errors.Is(err, ErrNoWorker) || j == nil {
			_, _ = q.Heartbeat(ctx, "", h.id, h.a, 0) // or it is tried again
			continue
		}
		l := &held{hand: h, job: *j}
		if l.succeed(context.WithoutCancel(ctx), string(j.Payload)) == nil {
			succeeded(j.ID)
		}
	}
}

// TestKill kills a server again and again while it accepts jobs and its workers do
// them. Nothing that was accepted is lost or done twice, and nothing is stuck.
func TestKill(t *testing.T) {
	kills := inFull(5, 2)
	if v := os.Getenv(killsVariable); v != "" {
		var err error
		if kills, err = strconv.Atoi(v); err != nil {
			t.Fatalf("%s: %v", killsVariable, err)
		}
	}
	dir := t.TempDir()
	done := &tally{succeeded: make(map[string]int)}
	var accepted []string
	for range kills {
		accepted = append(accepted, killedServer(t, dir, 5+rand.IntN(200), done)...)
	}

	q := openEmbedded(t, func(c *Config) { c.Dir, c.Lease = dir, briefLease })
	working, stopWorking := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { work(working, q, done.add) })
	}
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

// killedServer runs a server until it has accepted that many jobs, kills it in
// the midst of the next ones, and returns all that it accepted.
func killedServer(t *testing.T, dir string, jobs int, done *tally) (accepted []string) {
	t.Helper()
	s := self(t, serverVariable+"="+dir)
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, id, _ := strings.Cut(lines.Text(), " ")
		if _, ok := parseID(id); !ok {
			continue // the last line may be cut
		}
		switch word {
		case acceptedWord:
			accepted = append(accepted, id)
		case succeededWord:
			done.add(id)
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
	for { // acknowledgements that got lost are repaired when their leases have run out
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

func (y *tally) add(id string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.succeeded[id]++
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
