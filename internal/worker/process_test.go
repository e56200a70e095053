package worker

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"memorymark/internal/job"
	"memorymark/internal/testmachine"
)

// workerVariable makes the test binary a worker, to be killed by a test. It
// holds the URL to join, and tokenVariable the token.
const (
	workerVariable = "MEMORYMARK_TEST_WORKER"
	tokenVariable  = "MEMORYMARK_TEST_TOKEN"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(workerVariable); url != "" {
		if err := beWorker(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // they wait more than they work
		panic(err)
	}
	os.Exit(m.Run())
}

func beWorker(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w, err := Join(ctx, &Client{URL: url, Token: os.Getenv(tokenVariable)}, Config{Slots: []Slot{{Card: job.Card{ID: "t4"}, Run: perform}}, Drain: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// spawn starts a worker as a process.
func (l *lab) spawn() *exec.Cmd {
	l.Helper()
	program, err := os.Executable()
	if err != nil {
		l.Fatal(err)
	}
	c := exec.Command(program)
	c.Env = append(os.Environ(), workerVariable+"="+l.url, tokenVariable+"="+l.token)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c
}

func TestWorkerKilled(t *testing.T) {
	l := newLab(t)
	first := l.spawn()
	id := l.submit(task{Do: "wait"}).ID
	old := l.reach(id, job.Running)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	l.spawn()
	for {
		if j := l.reach(id, job.Running); j.Attempt > 1 {
			if j.Deaths != 1 || j.Worker == old.Worker {
				t.Errorf("taken again as %+v", j)
			}
			return
		}
	}
}

// A process that is stopped does not know it. When it continues, another worker
// has its job, and it must not report.
func TestWorkerStopped(t *testing.T) {
	l := newLab(t)
	first := l.spawn()
	end := filepath.Join(t.TempDir(), "end")
	id := l.submit(task{Do: "follow", Input: 4, File: end}).ID
	stopped := l.works(id).Worker
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for status := syscall.WaitStatus(0); !status.Stopped(); { // a busy machine takes its time
		if _, err := syscall.Wait4(first.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil && err != syscall.EINTR {
			t.Fatal(err)
		}
	}
	testmachine.WriteFile(t, end, "")
	l.spawn()
	j := l.reach(id, job.Succeeded)
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	// Its report of the result is refused, and then it takes other jobs.
	for i := 0; l.reach(l.submit(task{Do: "succeed", Input: i}).ID, job.Succeeded).Worker != stopped; i++ {
	}
	now, err := l.q.Get(l.ctx, id)
	if err != nil || now.Worker != j.Worker || now.Attempt != 2 || !now.Ended.Equal(j.Ended) {
		t.Errorf("was %+v, is %+v, %v", j, now, err)
	}
}

func TestJobKillsWorkers(t *testing.T) {
	l := newLabFor(t, briefLease)
	for range job.MaxDeaths + 1 {
		l.spawn()
	}
	j := l.reach(l.submit(task{Do: "die"}).ID, job.Failed)
	if j.Attempt != job.MaxDeaths || j.Deaths != job.MaxDeaths || !strings.Contains(j.Reason, "3 workers died") {
		t.Errorf("failed as %+v", j)
	}
	l.reach(l.submit(task{Do: "succeed"}).ID, job.Succeeded) // one is left
}

// If the job killed the last worker, no one finds that out but the
// server.
func TestJobKillsLastWorker(t *testing.T) {
	l := newLabFor(t, briefLease)
	id := l.submit(task{Do: "die"}).ID
	for attempt := 1; attempt <= job.MaxDeaths; attempt++ {
		l.spawn()
		for {
			j, err := l.q.Get(l.ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if j.State != job.Running && j.Deaths == attempt {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	l.reach(id, job.Failed)
}

func TestWorkerTerminated(t *testing.T) {
	l := newLab(t)
	first := l.spawn()
	id := l.submit(task{Do: "wait"}).ID
	l.works(id)
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
	if j := l.reach(id, job.Queued); j.Deaths != 0 || !strings.Contains(j.Reason, "told to stop") {
		t.Errorf("given back as %+v", j)
	}
}
