package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lifeVariable makes the test's program live a few jobs' lives in a folder, and
// stepsVariable says at how many places of it a test looks: all, or that many.
const (
	lifeVariable     = "MEMORYMARK_TEST_LIFE"
	unsyncedVariable = "MEMORYMARK_TEST_UNSYNCED"
	faultsVariable   = "MEMORYMARK_TEST_FAULTS"
	stepsVariable    = "MEMORYMARK_CRASHES"
)

// TestLives is the process that others watch. It prints what was acknowledged:
// the word, and the job.
func TestLives(t *testing.T) {
	dir := os.Getenv(lifeVariable)
	if dir == "" {
		t.Skip("it is run by others")
	}
	limit := patience
	if os.Getenv(faultsVariable) != "" {
		limit = 20 * time.Second // what fails is tried for so long; less may be acknowledged then
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	q, err := Open(ctx, Config{Dir: dir, unsynced: os.Getenv(unsyncedVariable) != ""})
	if err != nil {
		fmt.Println("not opened", err)
		os.Exit(0)
	}
	said := func(word, id string, err error) {
		if err == nil {
			fmt.Println("ack", word, id)
		}
	}
	l, err := joinHand(ctx, q, "t4")
	for i := 0; err == nil && i < 3; i++ {
		j, _, err := q.Submit(ctx, Request{Card: "t4", Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
		if err != nil {
			continue
		}
		said("submitted", j.ID, nil)
		if i == 0 { // cancelled before a worker takes it
			_, err := q.Cancel(ctx, j.ID, "")
			said("cancelled", j.ID, err)
			continue
		}
		lease, err := l.take(ctx)
		if err != nil || lease == nil {
			continue
		}
		_ = lease.say(ctx, `1`)
		brief, stop := context.WithTimeout(ctx, limit/6)
		said("succeeded", lease.job.ID, lease.succeed(brief, `{"largest":1}`))
		stop()
	}
	fmt.Println("lived")
	os.Exit(0) // as a crash: nothing is put in order
}

// live watches the process.
func live(t *testing.T, dir string, fault func(operation) syscall.Errno) []operation {
	t.Helper()
	c := self(t, lifeVariable+"="+dir)
	c.Args = append(c.Args, "-test.run=^TestLives$")
	if fault != nil {
		c.Env = append(c.Env, faultsVariable+"=yes")
	}
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c.Stdout, c.Stderr = out, nil
	return watchDisk(t, c, dir, fault)
}

// acknowledged checks that a folder has all that was said.
func acknowledged(t *testing.T, dir string, said []string) (err error) {
	t.Helper()
	q, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		return err
	}
	defer q.Close()
	lost := func(format string, args ...any) { err = errors.Join(err, fmt.Errorf(format, args...)) }
	for _, line := range said {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "ack" {
			continue
		}
		j, getErr := q.Get(t.Context(), words[2])
		switch {
		case getErr != nil:
			lost("%s: %w", line, getErr)
		case words[1] != "submitted" && string(j.State) != words[1]:
			lost("%s: it is %+v", line, j)
		case words[1] == "succeeded":
			if _, resultErr := q.Result(t.Context(), j.ID); resultErr != nil {
				lost("%s: %w", line, resultErr)
			}
		}
	}
	return errors.Join(err, q.index.wait(t.Context()), q.repair(t.Context()))
}

// steps picks that many of n places, or all if a variable says so.
func steps(t *testing.T, n, few int) []int {
	t.Helper()
	if v := os.Getenv(stepsVariable); v != "" {
		var err error
		if few, err = strconv.Atoi(v); err != nil {
			t.Fatalf("%s: %v", stepsVariable, err)
		}
	}
	picked := rand.Perm(n)
	return picked[:min(few, n)]
}

// TestCrashAnywhere ends a server after any of the operations that change its disk,
// while it has jobs in every state: with the power on, and with the power failing,
// which loses what was not synced. Everything that was acknowledged must be there.
func TestCrashAnywhere(t *testing.T) {
	dir := t.TempDir()
	log := live(t, dir, nil)
	if !slices.ContainsFunc(log, func(o operation) bool { return o.call == "say" && strings.Contains(string(o.data), "lived") }) {
		t.Fatalf("of %d operations none says that all has happened; the last is %+v", len(log), log[len(log)-1])
	}
	after := steps(t, len(log), inFull(25, 6))
	t.Cleanup(func() {
		if !t.Failed() {
			t.Logf("crashes and power failures after %d of %d operations on the disk: everything acknowledged was there", len(after), len(log))
		}
	})
	for _, n := range after {
		d := newDisk()
		for _, o := range log[:n+1] {
			d.do(o)
		}
		for what, powerFailed := range map[string]bool{"crash": false, "power failure": true} {
			t.Run(fmt.Sprintf("%s after operation %d, %s", what, n, log[n].call), func(t *testing.T) {
				t.Parallel()
				image := t.TempDir()
				d.write(t, dir, image, powerFailed)
				if err := acknowledged(t, image, d.said); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestFailingWrites lets any one operation fail, as a disk that is full or broken
// does. What is acknowledged all the same is there.
func TestFailingWrites(t *testing.T) {
	total := 0
	live(t, t.TempDir(), func(operation) syscall.Errno { total++; return 0 })
	failing := steps(t, total, inFull(8, 2))
	for _, n := range failing {
		for _, e := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			t.Run(fmt.Sprintf("operation %d: %v", n, e), func(t *testing.T) {
				dir := t.TempDir()
				count := 0
				failed := operation{}
				log := live(t, dir, func(o operation) syscall.Errno {
					if count++; count == n+1 {
						failed = o
						return e
					}
					return 0
				})
				d := newDisk()
				for _, o := range log {
					d.do(o)
				}
				if err := acknowledged(t, dir, d.said); err != nil {
					t.Errorf("after %s of %s: %v", failed.call, failed.path, err)
				}
			})
		}
	}
	if !t.Failed() {
		t.Logf("%d of %d operations on the disk failed, with an I/O error and with a full disk: everything acknowledged was there", len(failing), total)
	}
}

// TestPowerFailureIsFelt holds TestCrashAnywhere to its word: of an engine that
// does not sync, it finds what is lost.
func TestPowerFailureIsFelt(t *testing.T) {
	t.Setenv(unsyncedVariable, "yes")
	dir, image := t.TempDir(), t.TempDir()
	d := newDisk()
	for _, o := range live(t, dir, nil) {
		d.do(o)
	}
	d.write(t, dir, image, true)
	if err := acknowledged(t, image, d.said); err == nil {
		t.Errorf("nothing is lost of %q", d.said)
	}
}
