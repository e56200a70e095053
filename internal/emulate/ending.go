package emulate

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Failure is how a process ended that did not end well, as far as it is known.
type Failure struct {
	Exception string `json:"exception,omitempty"` // its type and the first line of its message
	Where     string `json:"where,omitempty"`     // the user's own line that it came from
	Signal    string `json:"signal,omitempty"`    // such as SIGKILL
	ExitCode  int    `json:"exit_code,omitempty"` // as a shell has it: 128 and the signal
	// LeftRunning is a process that outlived the command and was ended after it.
	LeftRunning bool `json:"left_running,omitempty"`
	// Interrupted is a process that was told to end from outside the command.
	Interrupted bool `json:"interrupted,omitempty"`
}

// String says how it ended, as "killed by SIGKILL".
func (f *Failure) String() string {
	switch {
	case f.Interrupted && f.Where != "":
		return "interrupted at " + f.Where
	case f.Interrupted:
		return "interrupted"
	case f.Exception != "" && f.Where != "":
		return fmt.Sprintf("ended with %s, at %s", f.Exception, f.Where)
	case f.Exception != "":
		return "ended with " + f.Exception
	case f.LeftRunning:
		return "still running when the command ended"
	case f.Signal != "":
		return "killed by " + f.Signal
	case f.ExitCode != 0:
		return fmt.Sprintf("ended with exit code %d", f.ExitCode)
	default:
		return "killed, or crashed"
	}
}

// fromOutside reports whether others ended the process: whoever told it to end, or
// a kernel without memory. What it read is not why.
func (f *Failure) fromOutside() bool {
	return f != nil && (f.Interrupted || slices.Contains([]string{"SIGHUP", "SIGINT", "SIGKILL", "SIGTERM"}, f.Signal))
}

// ending is how a command ended, and what it left behind.
type ending struct {
	pid  int
	code int
	left map[int]bool // the processes that were still running

	stopped     bool // its time was over (Settings.Seconds): that is not a failure
	interrupted bool // the command was told to end: what it then does says nothing of its memory
}

// signal is the name of the signal that ended the command, or a process that a
// shell waited for: the shell then ends with 128 and its number.
func (e *ending) signal() string {
	if e.code <= 128 {
		return ""
	}
	return signalName(e.code - 128)
}

// failure is that of the command, nil if it ended well.
func (e *ending) failure() *Failure {
	if e.code == 0 && !e.interrupted {
		return nil
	}
	return &Failure{Signal: e.signal(), ExitCode: e.code, Interrupted: e.interrupted}
}

// conclude completes what a process says about its end. One that is killed says
// nothing, and none knows its exit code.
func (e *ending) conclude(p *Process, running bool) {
	switch {
	case e.stopped:
		p.Failure = nil
	case p.PID == e.pid && e.failure() == nil:
		p.Failure = nil // the interpreter kept an error that a debugger has shown
	case p.PID == e.pid:
		said := p.Failure
		p.Failure = e.failure()
		if said != nil {
			p.Failure.Exception, p.Failure.Where = said.Exception, said.Where
		}
	case running && e.left[p.PID]:
		p.Failure = &Failure{LeftRunning: true}
	case running:
		p.Failure = &Failure{Signal: e.signal()}
	}
	if p.Failure != nil {
		p.Failure.Interrupted = e.interrupted
	}
	p.Sampled = running
}

// fits says whether a process had enough memory, nil if that is not known. One
// that catches an out-of-memory error and finishes the step with less has.
func (p *Process) fits(command *Failure) *bool {
	caught := len(p.OOMs) == 0 || p.OOMs[len(p.OOMs)-1].Step <= p.Steps
	known := caught && p.Failure == nil && command == nil
	if p.Failure != nil && strings.HasPrefix(p.Failure.Exception, "torch.OutOfMemoryError") {
		caught = false // also of an allocator that does not tell of it (cudaMallocAsync)
	}
	if known || !caught && p.Failure != nil && !p.Failure.Interrupted {
		return &known
	}
	return nil
}

// used reports whether a process has anything to say: one that only imported
// PyTorch has not.
func (p *Process) used() bool {
	return len(p.Devices) > 0 || len(p.OOMs) > 0 || len(p.Notes) > 0
}

// exitCode is a command's, as a shell has it: 128 and the signal that killed it.
func exitCode(state *os.ProcessState, err error) int {
	if state == nil {
		return 1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	if err != nil {
		return cmp.Or(state.ExitCode(), 1)
	}
	return state.ExitCode()
}
