package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/workload"
)

// engineFlags say whether to predict or to measure, and how to measure.
type engineFlags struct {
	engine     evidence.Engine
	python     string
	device     string
	limit      string
	timeout    time.Duration
	transcript string

	open    *measure.Session // kept for the next workload of a file,
	openFor string           // if it is of the same kind
	lines   *os.File         // of the transcript
}

// autoDevice is the best device that PyTorch finds.
const autoDevice = "auto"

// addEngineFlags adds the choice of engine and what measuring takes.
func addEngineFlags(c *cobra.Command) *engineFlags {
	f := &engineFlags{device: autoDevice}
	c.Flags().StringVar((*string)(&f.engine), "engine", string(evidence.Auto), "`how`: predicted, measured on this machine's GPU, or auto: measured where that is possible")
	f.addPython(c.Flags())
	return f
}

// addPython adds what every command that can measure takes.
func (f *engineFlags) addPython(flags *pflag.FlagSet) {
	flags.StringVar(&f.python, "python", "", "the `Python` with PyTorch (default: $MEMORYMARK_PYTHON, the virtual environment, python3)")
	flags.DurationVar(&f.timeout, "timeout", measure.DefaultTimeout, "`time` after which a probe is killed")
	flags.StringVar(&f.transcript, "transcript", "", "write every line to and from PyTorch to a `file`")
}

// addDevice adds where to measure, for commands that do not say it otherwise.
func (f *engineFlags) addDevice(flags *pflag.FlagSet) {
	flags.StringVar(&f.device, "device", autoDevice, "`what` to measure on: cuda, cuda:1, mps, cpu or auto")
	flags.StringVar(&f.limit, "limit", "", "the most `memory` that PyTorch may hold, as 22GiB: a smaller card on a larger one; --limit-gib 22 is the same")
}

func (f *engineFlags) close() {
	if f.open != nil {
		_ = f.open.Close() // it was killed if it did not end
	}
	if f.lines != nil {
		f.lines.Close()
	}
}

// userFunction matches train.py:make, and train.py alone.
var userFunction = regexp.MustCompile(`^(.+\.py)(?::([A-Za-z_][A-Za-z0-9_]*))?$`)

// subject is what is to be trained: a workload, or the settings of one with a
// user's own model.
func (f *engineFlags) subject(e *env, d workload.Draft) (*workload.Workload, *measure.UserModel, error) {
	if f.limit != "" {
		limit, err := parseLimit(f.limit)
		if err != nil {
			return nil, nil, err
		}
		d.Set("limit_gib", fmt.Sprintf("%.17g", float64(limit)/float64(bytesize.GiB)))
	}
	match := userFunction.FindStringSubmatch(d.Text("model"))
	if match == nil {
		w, err := e.finish(d)
		return w, nil, err
	}
	user := &measure.UserModel{Path: match[1], Function: match[2]}
	if user.Function == "" {
		user.Function = "make"
	}
	if _, err := os.Stat(user.Path); err != nil {
		return nil, nil, badInput("check the path", "there is no file %s", user.Path)
	}
	w, err := d.WithoutModel()
	return w, user, err
}

// parseLimit reads the most that an allocator may reserve. Less than a segment
// of it is a number whose unit was forgotten.
func parseLimit(text string) (bytesize.Bytes, error) {
	limit, err := bytesize.Parse(text)
	if err != nil || limit < 2*bytesize.MiB {
		return 0, badUsage("write it as --limit 22GiB", "--limit is %q; it must be an amount of memory, at least 2 MiB", text)
	}
	return limit, nil
}

// session opens a session to measure with, nil if that is not possible and the
// answer is to be predicted after all. Spares are processes that open the
// device ahead. It is closed by close.
func (f *engineFlags) session(ctx context.Context, e *env, w *workload.Workload, user *measure.UserModel, spares int) (*measure.Session, error) {
	kind := "user"
	if user == nil {
		kind = w.Config.Architecture
	}
	if f.open != nil && f.openFor == kind {
		return f.open, nil
	}
	python, err := measure.FindPython(f.python, os.Getenv)
	if err != nil {
		return f.unable(e, user, err)
	}
	o := measure.Options{Python: python, Device: f.device, Timeout: f.timeout, Workload: w, User: user, Spares: spares}
	if f.transcript != "" {
		if f.lines == nil {
			if f.lines, err = os.Create(f.transcript); err != nil {
				return nil, badInput("", "--transcript: %w", err)
			}
		}
		o.Transcript = f.lines
	}
	e.say("importing PyTorch with %s", python.Path)
	s, err := measure.Start(ctx, o)
	if err != nil {
		return f.unable(e, user, err)
	}
	if f.device == autoDevice && s.Device.Type == "cpu" {
		_ = s.Close()
		return f.unable(e, user, errors.New("PyTorch finds no GPU; --device cpu would measure live tensors on the CPU"))
	}
	if f.open != nil {
		_ = f.open.Close()
	}
	f.open, f.openFor = s, kind
	return s, nil
}

// deviceName matches what PyTorch calls devices.
var deviceName = regexp.MustCompile(`^(auto|cuda(:[0-9]+)?|mps|cpu)$`)

// wanted decides whether to measure.
func (f *engineFlags) wanted(ctx context.Context, e *env, w *workload.Workload, user *measure.UserModel) (bool, error) {
	if !deviceName.MatchString(f.device) {
		return false, badUsage("", "--device is %q; it must be cuda, cuda:1, mps, cpu or auto", f.device)
	}
	switch {
	case f.engine == evidence.Predicted && user != nil:
		return false, badUsage("leave --engine out", "%s is a program: it can be measured, not predicted", user.Path)
	case f.engine == evidence.Predicted:
		return false, nil
	case f.engine == evidence.Measured, user != nil:
		return true, nil
	case f.engine != evidence.Auto:
		return false, badUsage("", "--engine is %q; it must be predicted, measured or auto", f.engine)
	case f.device != autoDevice:
		return true, nil
	}
	name, ok := e.cardName(ctx)
	if !ok || w.GPU == "" {
		return ok, nil
	}
	asked, err := gpu.Find(w.GPU)
	if err != nil {
		return false, badUsage("memorymark gpus lists them", "%w", err)
	}
	here, err := gpu.Find(name)
	return err == nil && asked.ID == here.ID, nil
}

// unable is the answer where measuring is impossible: an error if that was
// asked for or there is nothing to predict, else a prediction and why.
func (f *engineFlags) unable(e *env, user *measure.UserModel, err error) (*measure.Session, error) {
	var old *measure.RequirementError
	hint := "memorymark doctor says what is missing"
	if errors.As(err, &old) {
		hint = old.Mend
	}
	if user == nil && f.engine == evidence.Auto && f.device == autoDevice && !errors.Is(err, context.Canceled) && f.open == nil {
		e.say("predicting, because %v", err)
		e.say("hint: %s", hint)
		f.engine = evidence.Predicted
		return nil, nil //nolint:nilnil // no session, and that is all right
	}
	if errors.Is(err, context.Canceled) {
		return nil, err
	}
	return nil, &failure{code: exitFailure, hint: hint, err: err}
}
