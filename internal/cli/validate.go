package cli

import (
	"context"

	"github.com/spf13/cobra"

	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/recording"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

// validateFlags are what every check takes.
type validateFlags struct {
	*workloadFlags
	*engineFlags
}

func newValidate(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "validate",
		Short: "Check predictions, backward and torch.compile with real steps",
		Long: "Runs real steps with this machine's PyTorch and checks that backward really runs, what\n" +
			"torch.compile gains, and that every allocation is as predicted.",
		Example: "  memorymark validate backward bert --batch 32\n" +
			"  memorymark validate compile gpt2 --precision amp-bf16\n" +
			"  memorymark validate prediction gpt2 --batch 8",
		Args: cobra.ArbitraryArgs,
		RunE: runGroup,
	}
	c.AddCommand(newValidateBackward(e), newValidateCompile(e), newValidatePrediction(e))
	return c
}

// where says what a check can run on.
type where int

const (
	thisMachine where = iota // a device that is there: it takes times
	anyCard                  // one that is not, too
)

// validates makes a command of a check.
func validates(e *env, c *cobra.Command, where where, check func(context.Context, *workload.Workload, engine.Measurement) (engine.CheckOutcome, error)) *cobra.Command {
	f := validateFlags{workloadFlags: e.addWorkloadFlags(c), engineFlags: &engineFlags{engine: evidence.Measured}}
	if where == anyCard {
		c.Flags().StringVar((*string)(&f.engine), "engine", string(evidence.Measured), "`engine`: measured on this machine's GPU, or emulated")
	}
	f.addDevice(c.Flags())
	f.addPython(c.Flags())
	c.Args = exactArgs("MODEL")
	c.RunE = func(c *cobra.Command, args []string) error {
		defer f.close()
		if !f.engine.RunsSteps() {
			return badUsage("", "--engine is %q; it must be measured or emulated", f.engine)
		}
		if err := f.start(c.Context(), e); err != nil {
			return err
		}
		q, user, err := f.request(c.Context(), e, f.draft(workload.Draft{}, args))
		if err != nil {
			return badWorkload(c, err)
		}
		m := engine.Measurement{User: user, Progress: e.liveEvents()}
		return explainUnable(f.runner.Check(c.Context(), f.engine, q, m, func(m engine.Measurement) error {
			verdict, err := check(c.Context(), q.Workload, m)
			if err == nil && verdict == engine.Fail {
				return errNo
			}
			return err
		}), user)
	}
	return c
}

func newValidateBackward(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "backward MODEL",
		Short: "Check that backward really runs",
		Long: "Measures the peak of a forward pass under no_grad and that of forward and backward. A\n" +
			"ratio below 1.2 means that backward did not run: FAIL, exit code 1. It is PASS within 10 %\n" +
			"of the predicted ratio, and WARN otherwise.",
		Example: "  memorymark validate backward bert --batch 32\n" +
			"  memorymark validate backward train.py:make",
	}
	return validates(e, c, anyCard, func(ctx context.Context, w *workload.Workload, m engine.Measurement) (engine.CheckOutcome, error) {
		found, err := engine.ValidateBackward(ctx, w, m)
		if err != nil {
			return "", err
		}
		return found.Verdict, e.print(found, report.BackwardCheck{BackwardCheck: found}.Write)
	})
}

func newValidateCompile(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "compile MODEL",
		Short: "Measure what torch.compile gains, and when it pays off",
		Long: "Runs steps eagerly and with torch.compile, each in a fresh process, and compares the\n" +
			"first step, later steps and the peak. Says after how many steps compiling pays off.",
		Example: "  memorymark validate compile gpt2 --precision amp-bf16\n" +
			"  memorymark validate compile train.py:make --timeout 20m",
	}
	return validates(e, c, thisMachine, func(ctx context.Context, w *workload.Workload, m engine.Measurement) (engine.CheckOutcome, error) {
		found, err := engine.ValidateCompile(ctx, w, m)
		if err != nil {
			return "", err
		}
		return found.Verdict, e.print(found, report.CompileCheck{CompileCheck: found}.Write)
	})
}

func newValidatePrediction(e *env) *cobra.Command {
	var path string
	var frames int
	c := &cobra.Command{
		Use:   "prediction MODEL",
		Short: "Compare a prediction with a real or emulated run, event by event",
		Long: "Records a whole process on this machine's GPU, building the model and running three\n" +
			"steps, predicts the same, and compares them event by event. Shows the first difference\n" +
			"and the code behind it. The exit code is 1 if there is one.\n\n" +
			"With --engine emulated it needs no GPU: your PyTorch runs on an emulated one.\n\n" +
			"With --snapshot the recording is kept for snapshot info, top, timeline and replay.",
		Example: "  memorymark validate prediction gpt2 --batch 8\n" +
			"  memorymark validate prediction bert --engine emulated --gpu rtx-4090\n" +
			"  memorymark validate prediction bert --precision amp-bf16 --snapshot measured.pickle",
	}
	c.Flags().StringVar(&path, "snapshot", "", "write the recording to a `file`")
	c.Flags().IntVar(&frames, "frames", 0, "show the `N` innermost stack frames of the first difference; -1 shows all")
	return validates(e, c, anyCard, func(ctx context.Context, w *workload.Workload, m engine.Measurement) (engine.CheckOutcome, error) {
		if m.Session.Device.Type != "cuda" {
			return "", badUsage("validate backward and compile work there; --engine emulated needs no GPU", "PyTorch records memory only on CUDA devices, not on %s", m.Session.Device.Name)
		}
		found, err := engine.ValidatePrediction(ctx, w, m, path)
		if err != nil {
			return "", err
		}
		file := path
		if file == "" {
			file = "the recording"
		}
		r := recording.NewCompare(recording.CompareInput{File: "the prediction", Trace: found.Predicted},
			recording.CompareInput{File: file, Trace: found.Measured}, found.Comparison, 10, 4)
		r.Engine = m.Session.Engine()
		return found.Verdict, e.print(r, report.Compare{Compare: r, Frames: frames}.Write)
	})
}
