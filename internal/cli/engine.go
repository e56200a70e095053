package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/pymodule"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// engineFlags say whether to predict or to measure, and how to measure.
type engineFlags struct {
	engine     evidence.Engine
	python     string
	device     string
	timeout    time.Duration
	transcript string

	runner *engine.Runner // made by start
	lines  *os.File       // of the transcript
}

// addEngineFlags adds the choice of engine and what measuring takes.
func addEngineFlags(c *cobra.Command) *engineFlags {
	f := &engineFlags{device: engine.AutoDevice}
	c.Flags().StringVar((*string)(&f.engine), "engine", string(evidence.Auto), "`engine`: predicted, emulated, measured on this machine's GPU, or auto, which measures where it can")
	f.addPython(c.Flags())
	return f
}

// addPython adds what every command that can measure takes.
func (f *engineFlags) addPython(flags *pflag.FlagSet) {
	flags.StringVar(&f.python, "python", "", "`Python` that has PyTorch (default: $MEMORYMARK_PYTHON, the virtual environment, python3)")
	flags.DurationVar(&f.timeout, "timeout", measure.DefaultTimeout, "`time` after which a probe is killed")
	flags.StringVar(&f.transcript, "transcript", "", "log every line to and from PyTorch to a `file`")
}

// addDevice adds where to measure, for commands that do not say it otherwise.
func (f *engineFlags) addDevice(flags *pflag.FlagSet) {
	flags.StringVar(&f.device, "device", engine.AutoDevice, "`device` to measure on: cuda, cuda:1, mps, cpu or auto")
}

// deviceName matches what PyTorch calls devices.
var deviceName = regexp.MustCompile(`^(auto|cuda(:[0-9]+)?|mps|cpu)$`)

// start checks the flags and makes the runner, which close ends.
func (f *engineFlags) start(ctx context.Context, e *env) (err error) {
	switch {
	case !slices.Contains(evidence.Choices, f.engine):
		return badUsage("", "--engine is %q; it must be predicted, emulated, measured or auto", f.engine)
	case !deviceName.MatchString(f.device):
		return badUsage("", "--device is %q; it must be cuda, cuda:1, mps, cpu or auto", f.device)
	}
	o := engine.RunnerOptions{
		Python: f.python, Device: f.device, Timeout: f.timeout, Hurry: ctx.Done(),
		Importing: func(python string, emulated *gpu.Card) {
			if emulated != nil {
				e.say("importing PyTorch with %s, on an emulated %s", python, emulated.Name)
				return
			}
			e.say("importing PyTorch with %s", python)
		},
		Predicting: func(why error) {
			e.say("predicting, because %v", why)
			e.say("hint: %s", fixOf(why))
		},
	}
	if f.transcript != "" {
		if f.lines, err = os.Create(f.transcript); err != nil {
			return badInput("", "--transcript: %w", err)
		}
		o.Transcript = f.lines
	}
	f.runner = engine.NewRunner(o)
	return nil
}

func (f *engineFlags) close() {
	if f.runner != nil {
		_ = f.runner.Close() // it was killed if it did not end
	}
	if f.lines != nil {
		f.lines.Close()
	}
}

// fixOf says what to do where nothing can be measured.
func fixOf(err error) string {
	var old *measure.RequirementError
	var fixable interface{ Fix() string }
	switch {
	case errors.As(err, &fixable):
		return fixable.Fix()
	case errors.As(err, &old):
		return old.Fix
	case errors.Is(err, engine.ErrNoGPU):
		return "--device cpu measures live tensors on the CPU; memorymark doctor says what is missing"
	default:
		return "memorymark doctor says what is missing"
	}
}

// explainUnable adds what to do to the error of a runner. A mistake in a user's
// own program is one of an input file.
func explainUnable(err error, user *measure.UserModel) error {
	var (
		unable *engine.UnableError
		failed *measure.Failure
	)
	switch {
	case errors.As(err, &unable):
		return &failure{code: exitFailure, hint: fixOf(err), err: err}
	case user != nil && errors.As(err, &failed) && failed.Class == measure.Other:
		return badInput("", "%w", err)
	default:
		return err
	}
}

// userFunction matches train.py:make, and train.py alone.
var userFunction = regexp.MustCompile(`^(.+\.py)(?::([A-Za-z_][A-Za-z0-9_]*))?$`)

// subject is what is to be trained: a workload, or the settings of one with a
// user's own model.
func (f *engineFlags) subject(ctx context.Context, e *env, d workload.Draft) (*workload.Workload, *measure.UserModel, error) {
	match := userFunction.FindStringSubmatch(d.Text("model"))
	if match == nil {
		w, err := e.finish(ctx, d, f.engine)
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
	if err != nil || f.engine != evidence.Auto && f.engine != evidence.Predicted {
		return w, user, err
	}
	own, err := f.evaluated(ctx, e, w, user)
	switch {
	case err == nil:
		return own, user, nil
	case f.engine == evidence.Predicted:
		return nil, nil, badInput("leave out --engine, and your own PyTorch runs it on an emulated card", "%w", err)
	}
	w.Unmodelled = err.Error()
	return w, user, nil
}

// evaluated is a workload that trains a user's own model, if all of its source is known.
func (f *engineFlags) evaluated(ctx context.Context, e *env, w *workload.Workload, user *measure.UserModel) (*workload.Workload, error) {
	card, err := e.cardOf(ctx, w)
	if err != nil {
		return nil, err
	}
	python, err := measure.FindPython(f.python, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", user.Path, err)
	}
	trees, err := measure.ReadSource(ctx, python, pymodule.ProgramScript, user.Path)
	if err != nil {
		return nil, err
	}
	program, err := pymodule.NewProgram(trees, strings.TrimSuffix(filepath.Base(user.Path), ".py"), user.Function)
	if err != nil {
		return nil, fmt.Errorf("read %s with %s: %w", user.Path, python.Path, err)
	}
	own, err := w.WithProgram(program)
	if err != nil {
		return nil, err
	}
	_, err = predict.Run(own, card, predict.Options{Steps: 1, Budget: workbudget.New(workbudget.PerQuestion, ctx.Err)})
	return own, err
}

// request is a question about what is to be trained, on the card that it names, or
// this machine's, or the default. The model is nil unless it is a user's own.
func (f *engineFlags) request(ctx context.Context, e *env, d workload.Draft) (q analysis.Request, user *measure.UserModel, err error) {
	if q.Workload, user, err = f.subject(ctx, e, d); err == nil {
		q.Card, err = e.cardOf(ctx, q.Workload)
	}
	return q, user, err
}

// emulates reports whether the steps of one batch, which nothing measures, run on
// an emulated card.
func (f *engineFlags) emulates(w *workload.Workload, user *measure.UserModel) bool {
	return engine.Choose(f.engine, w, (user == nil || w.Program != nil) && w.Unmodelled == "", engine.Means{Emulation: true}) == evidence.Emulated
}
