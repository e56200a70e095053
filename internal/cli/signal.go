package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"memorymark/internal/workbudget"
)

// endTime is how long a command may take to end when it is told to. What
// computes asks now and then whether it should continue, and what runs other
// programs ends them; a read from a pipe does neither.
const endTime = 800 * time.Millisecond

// signalError is why a context ended: a signal told this process to end.
type signalError struct{ syscall.Signal }

func (signalError) Error() string { return "interrupted" }

// Is has a signal count as what a context that ends without a cause says.
func (signalError) Is(target error) bool { return target == context.Canceled } //nolint:errorlint // as Is is to do

// code is the exit code of a process that a signal ended, as shells have it.
func (s signalError) code() int { return 128 + int(s.Signal) }

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. The
// second one ends the process at once, and so does the first if the command is
// still there after endTime; serve, worker and run take as long as they say.
func (e *env) untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case s := <-signals:
			signal.Stop(signals)
			cause := signalError{s.(syscall.Signal)}
			cancel(cause)
			select {
			case <-done:
			case <-time.After(endTime):
				if !e.endsItself.Load() {
					fmt.Fprintf(e.stderr, "memorymark: %v\n", cause)
					os.Exit(cause.code())
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// workOf is what a question of the command line may take.
func workOf(ctx context.Context) *workbudget.Budget {
	return workbudget.New(workbudget.PerCommand, ctx.Err)
}

// endedBy is the error of a command that a signal ended, whatever came of that
// in it. What had its result, or the exit code of a program that it ran, keeps
// that.
func endedBy(ctx context.Context, err error) error {
	var cause signalError
	var theirs exitStatus
	if err == nil || errors.As(err, &theirs) || !errors.As(context.Cause(ctx), &cause) {
		return err
	}
	return &failure{code: cause.code(), err: interrupted(err)}
}
