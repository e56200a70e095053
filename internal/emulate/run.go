package emulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Command is a program to run as it is.
type Command struct {
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

const (
	// interruptGrace is how long a command that is interrupted may continue: Python
	// takes a few tenths of a second to end, and writes down the peaks by then.
	interruptGrace = 700 * time.Millisecond
	// stopGrace is for one that is ended because its time is over, which no one waits for.
	stopGrace = 5 * time.Second
	// recordedGrace is for one whose recording was asked for, which it writes then.
	recordedGrace = 10 * time.Second
	killGrace     = 3 * time.Second
)

// Run runs a command with the device in the place of a GPU, and says what it
// took. The command's own failure is the summary's exit code, not an error.
// Nothing that it started is left when Run returns. Snapshots, if they were
// asked for, are in s.Folder, which is the caller's.
func (d *Installation) Run(ctx context.Context, s Settings, c Command) (*Summary, error) {
	if s.Values == Auto {
		return d.runAuto(ctx, s, c)
	}
	return d.run(ctx, s, c)
}

func (d *Installation) run(ctx context.Context, s Settings, c Command) (*Summary, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...) //nolint:noctx // it gets its own time to end, below
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.Env = append(os.Environ(), d.Environment(s, os.LookupEnv)...)
	cmd.WaitDelay = killGrace // for output that something else holds open
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Args[0], err)
	}
	bounded, cancel := within(ctx, s.Seconds)
	defer cancel()
	err := wait(bounded, cmd, s)
	end := &ending{
		pid: cmd.Process.Pid, code: exitCode(cmd.ProcessState, err), left: sweep(s.Folder),
		interrupted: ctx.Err() != nil, stopped: ctx.Err() == nil && bounded.Err() != nil,
	}
	if end.stopped {
		end.code = 0
	}
	sum, readErr := summarize(s, end)
	if sum != nil {
		sum.Seconds = time.Since(began).Seconds()
	}
	if ctx.Err() != nil {
		return sum, context.Cause(ctx)
	}
	return sum, readErr
}

// within is a context that ends after some seconds, or not before the other if
// there are none.
func within(ctx context.Context, seconds int) (context.Context, context.CancelFunc) {
	if seconds == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
}

// wait waits for a command, and ends it if the context ends.
func wait(ctx context.Context, cmd *exec.Cmd, s Settings) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace := interruptGrace
	switch {
	case s.Record:
		grace = recordedGrace
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		grace = stopGrace
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
	}
	_ = cmd.Process.Kill()
	select {
	case err := <-done:
		return err
	case <-time.After(killGrace):
		return errors.New("the command does not end")
	}
}

// sweep kills what a command left behind, and says which processes that were:
// whoever has the run's folder in its environment was started by it.
func sweep(folder string) map[int]bool {
	left := make(map[int]bool)
	mark := []byte("MEMORYMARK_EMULATE_FOLDER=" + folder + "\x00")
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return left
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(data, mark) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && pid != os.Getpid() {
			left[pid] = syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return left
}
