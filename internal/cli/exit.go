package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"memorymark/internal/engine"
)

// The exit codes, the same for every command.
const (
	exitOK          = 0
	exitNo          = 1
	exitUsage       = 2
	exitFailure     = 3
	exitOutOfMemory = 4
	exitInterrupted = 130
	exitTerminated  = 143
)

type exitMeaning struct {
	code    int
	meaning string
}

// exitCodes is the table that scripts rely on and that --help prints.
var exitCodes = []exitMeaning{
	{exitOK, "it worked, and the answer, if there is one, is yes"},
	{exitNo, "it worked, and the answer is no: differs, not valid, over its budget"},
	{exitUsage, "the command line or an input file is wrong"},
	{exitFailure, "something else failed: a disk, a network, MemoryMark itself"},
	{exitOutOfMemory, "it worked, and the answer is that training would run out of GPU memory"},
	{exitInterrupted, "it was interrupted (SIGINT)"},
	{exitTerminated, "it was terminated (SIGTERM)"},
}

func exitCodeHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, c := range exitCodes {
		fmt.Fprintf(&b, "  %3d  %s\n", c.code, c.meaning)
	}
	return b.String()
}

// errNo ends a command whose answer, already printed, is no.
var errNo = errors.New("the answer is no")

// errOutOfMemory ends a command whose answer, already printed, is that training would
// run out of GPU memory.
var errOutOfMemory = fmt.Errorf("%w: out of memory", errNo)

// failure is an error that knows its exit code and what to do about it.
type failure struct {
	code int
	hint string // "" if there is nothing to say
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// badUsage returns an error about the command line.
func badUsage(hint, format string, args ...any) error {
	return &failure{code: exitUsage, hint: hint, err: fmt.Errorf(format, args...)}
}

// badInput returns an error about a file that the user gave.
func badInput(hint, format string, args ...any) error {
	return &failure{code: exitUsage, hint: hint, err: fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	var f *failure
	var theirs exitStatus
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &theirs):
		return int(theirs)
	case errors.Is(err, errOutOfMemory):
		return exitOutOfMemory
	case errors.Is(err, errNo):
		return exitNo
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &f):
		return f.code
	default:
		return exitFailure
	}
}

// printError says once what went wrong and what to do.
func printError(w io.Writer, err error) {
	var theirs exitStatus
	if err == nil || errors.Is(err, errNo) || errors.As(err, &theirs) {
		return
	}
	if errors.Is(err, context.Canceled) {
		err = interrupted(err)
	}
	fmt.Fprintf(w, "memorymark: %v\n", err)
	var f *failure
	if errors.As(err, &f) && f.hint != "" {
		fmt.Fprintf(w, "hint: %s\n", f.hint)
	}
}

// errorAnswer is an error as JSON, where there is no result.
type errorAnswer struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// printErrorJSON writes an error where a result would have been: a program that
// asked for JSON gets JSON.
func (e *env) printErrorJSON(err error) {
	var theirs exitStatus
	if err == nil || e.printed || errors.Is(err, errNo) || errors.As(err, &theirs) {
		return
	}
	out := errorAnswer{Error: err.Error()}
	var f *failure
	if errors.As(err, &f) {
		out.Hint = f.hint
	}
	_ = writeJSON(e.stdout, out) // stderr has it, too
}

// interrupted is an error that says so, and what was known by then.
func interrupted(err error) error {
	var early *engine.UnfinishedError
	if errors.As(err, &early) && early.Survived > 0 {
		return fmt.Errorf("interrupted; batch %d trains, larger batches may too", early.Survived)
	}
	return errors.New("interrupted")
}
