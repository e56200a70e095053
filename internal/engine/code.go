package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
)

// Code is a program of a user's own that travels with an order. It runs on an
// emulated card, in a sandbox of a worker that was started for that.
type Code struct {
	Files    map[string]string `json:"files" doc:"Python files by name; they can import each other"`
	File     string            `json:"file" doc:"the file that has the function, such as train.py"`
	Function string            `json:"function" doc:"returns the model, and if you like the batch, the optimizer and the loss"`
}

// CodeQueue is where orders with code wait for such a worker. It is used like a
// card's id; no card has this id.
const CodeQueue = "emulated-code"

// What code may be.
const (
	maxCodeFiles = 64
	maxCodeBytes = 1 << 20
)

var (
	pythonFile = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}\.py$`)
	pythonName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

// Name is the code as the command line has it: train.py:make.
func (c *Code) Name() string { return c.File + ":" + c.Function }

// Check reports what is wrong with code, without a look at what it does.
func (c *Code) Check() error {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		if size += len(c.Files[name]); !pythonFile.MatchString(name) {
			return fmt.Errorf("files: %.80q must be the name of a Python file, without a folder, such as train.py", name)
		}
	}
	_, there := c.Files[c.File]
	switch {
	case len(c.Files) > maxCodeFiles || size > maxCodeBytes:
		return fmt.Errorf("files: there are %d with %d bytes; at most %d with %d are taken", len(c.Files), size, maxCodeFiles, maxCodeBytes)
	case !there:
		return fmt.Errorf("file: %.80q is not among files", c.File)
	case !pythonName.MatchString(c.Function):
		return fmt.Errorf("function: %.80q must be the name of a function, such as make", c.Function)
	}
	return nil
}

// codeOrder answers an order that carries code. Nothing of it is kept.
func (r *Runner) codeOrder(ctx context.Context, code *Code, q analysis.Request, tell func(any)) (a *analysis.Answer, err error) {
	if r.CodeMemory == 0 {
		return nil, errors.New("this worker does not run other people's code; start one with --allow-code")
	}
	if err := code.Check(); err != nil {
		return nil, err
	}
	place, err := measure.NewConfinement(r.CodeMemory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, place.Remove()) }()
	user, err := place.WriteCode(code.Files, code.File, code.Function)
	if err != nil {
		return nil, err
	}
	apart := NewRunner(RunnerOptions{Python: r.Python, Timeout: r.Timeout})
	apart.confinement = place
	defer func() { _ = apart.Close() }() // it was killed if it did not end
	return apart.Answer(ctx, evidence.Emulated, q, Measurement{User: user, Progress: func(e MeasuringEvent) { tell(e) }})
}
