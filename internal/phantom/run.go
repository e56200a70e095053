package phantom

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
	// interruptGrace is how long a command that is interrupted may go on: Python
	// takes a few tenths of a second to end, and writes down the peaks by then.
	interruptGrace = 700 * time.Millisecond
	// recordedGrace is for one whose recording was asked for, which it writes then.
	recordedGrace = 10 * time.Second
	killGrace     = 3 * time.Second
)

// Run runs a command with the device in the place of a GPU, and says what it
// took. The command's own failure is the summary's exit code, not an error.
// Nothing that it started is left when Run returns. Snapshots, if they were
// asked for, are in s.Folder, which is the caller's.
func (d *Device) Run(ctx context.Context, s Settings, c Command) (*Summary, error) {
	if s.Values == Auto {
		return d.runAuto(ctx, s, c)
	}
	return d.run(ctx, s, c)
}

func (d *Device) run(ctx context.Context, s Settings, c Command) (*Summary, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...) //nolint:noctx // it gets its own time to end, below
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.Env = append(os.Environ(), d.Environment(s, os.LookupEnv)...)
	cmd.WaitDelay = killGrace // for output that something else holds open
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Args[0], err)
	}
	err := wait(ctx, cmd, s)
	end := &ending{pid: cmd.Process.Pid, code: exitCode(cmd.ProcessState, err), left: sweep(s.Folder), interrupted: ctx.Err() != nil}
	sum, readErr := summarize(s, end)
	if sum != nil {
		sum.Seconds = time.Since(began).Seconds()
	}
	if ctx.Err() != nil {
		return sum, context.Cause(ctx)
	}
	return sum, readErr
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
	if s.Record {
		grace = recordedGrace
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
	mark := []byte("MEMORYMARK_PHANTOM_FOLDER=" + folder + "\x00")
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
