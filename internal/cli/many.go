package cli

import (
	"bufio"
	"context"
	"errors"
	"runtime"

	"github.com/spf13/cobra"

	"memorymark/internal/study"
	"memorymark/internal/workload"
)

// answerFile answers the workloads of a file on all cores, and writes a line
// for each, in order. One that cannot be answered gets a line that says why.
// An answer that comes with errNo is one, and makes the exit code.
func answerFile(c *cobra.Command, e *env, file string, answer func(context.Context, workload.Entry) (any, error)) error {
	entries, err := e.readWorkloads(file)
	if err != nil {
		return err
	}
	return answerEntries(c, e, file, entries, answer)
}

func answerEntries(c *cobra.Command, e *env, file string, entries []workload.Entry, answer func(context.Context, workload.Entry) (any, error)) error {
	out := bufio.NewWriter(e.stdout)
	e.printed = true
	wrong, no := 0, error(nil)
	progress := e.newPartProgress("workloads")
	if isTerminal(e.stdout) { // where every line shows it
		progress = nil
	}
	err := inOrder(c.Context(), len(entries), func(ctx context.Context, i int) (any, error) {
		if entries[i].Err != nil {
			return nil, entries[i].Err
		}
		return answer(ctx, entries[i])
	}, func(i int, answer any, err error) error {
		switch {
		case errors.Is(err, errNo):
			no = err
		case err != nil:
			wrong++
			answer = entryError{ID: entries[i].Draft.Text("id"), Line: entries[i].Line, Error: err.Error()}
		}
		_, err = out.Write(line(answer))
		progress.tell(study.RunProgress{Done: i + 1, Total: len(entries)})
		return err
	})
	progress.end(nil, "")
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if wrong > 0 {
		return badInput("", "%s: %d of %d workloads failed; their output lines say why", file, wrong, len(entries))
	}
	return no
}

// entryError is the line of a workload that could not be answered.
type entryError struct {
	ID    string `json:"id,omitempty"`
	Line  int    `json:"line,omitempty"` // of the file
	Error string `json:"error"`
}

// inOrder computes n answers on all cores and hands them over in order, each
// as soon as it and those before it are there.
func inOrder(ctx context.Context, n int, compute func(ctx context.Context, i int) (any, error), take func(i int, answer any, err error) error) error {
	type result struct {
		answer any
		err    error
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cores := runtime.GOMAXPROCS(0)
	pending := make(chan chan result, 2*cores) // how far the computing may run ahead
	go func() {
		defer close(pending)
		free := make(chan struct{}, cores)
		for i := range n {
			done := make(chan result, 1)
			select {
			case pending <- done:
			case <-ctx.Done():
				return
			}
			free <- struct{}{}
			go func() {
				answer, err := compute(ctx, i)
				done <- result{answer, err}
				<-free
			}()
		}
	}()
	for i := range n {
		done, ok := <-pending
		if !ok {
			break
		}
		r := <-done
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := take(i, r.answer, r.err); err != nil {
			return err
		}
	}
	return ctx.Err()
}
