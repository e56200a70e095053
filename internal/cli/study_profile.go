package cli

import (
	"io"

	"github.com/spf13/cobra"

	"memorymark/internal/evidence"
	"memorymark/internal/report"
	"memorymark/internal/snapshot"
	"memorymark/internal/study"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

type profileFlags struct {
	*studyFlags
	*engineFlags
	*stepFlags
	profileType string
	mixed       bool
	dtype       string
	output      string
}

func newProfile(e *env) *cobra.Command {
	var f profileFlags
	c := &cobra.Command{
		Use:   "profile [MODEL]",
		Short: "Profile the memory of a step, phase by phase",
		Long: "Warms up, records some steps, and writes them as a PyTorch memory snapshot with forward,\n" +
			"backward and optimizer marked. Prints the peak of each phase, what the highest peak is\n" +
			"made of, the time of a step, and the largest allocations with the code that made them.\n\n" +
			"--profile-type forward keeps what backward would need, as in training; inference does\n" +
			"not, as under torch.no_grad().\n\n" +
			"Without a GPU the snapshot is a prediction, and says so. The exit code is 4 if the steps\n" +
			"do not fit on the GPU; the output then says what would.",
		Example: "  memorymark study profile --model-size 2.7B --context-length 512 --profile-type training\n" +
			"  memorymark study profile --model-size xl --use-mixed-precision --dtype bf16 --output xl.pickle\n" +
			"  memorymark study profile gpt2 --sequence 1024 --batch 8 --precision bf16 --profile-type forward",
		Args: someArgs(0, "MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			defer f.close()
			if err := f.takeModel(args); err != nil {
				return err
			}
			return f.run(c, e)
		},
	}
	f.studyFlags = addStudyFlags(e, c, profileKeys...)
	f.engineFlags = addEngineFlags(c)
	f.stepFlags = addStepFlags(c, 5, 10)
	flags := c.Flags()
	flags.StringVar(&f.model, "model", "", "the model, like the argument MODEL: an `id` from memorymark models, or a path to a config.json")
	flags.StringVar(&f.profileType, "profile-type", "training", "`part` of a step to run: forward, backward (with forward), training or inference")
	flags.BoolVar(&f.mixed, "use-mixed-precision", false, "run under autocast, like --precision amp-bf16")
	flags.StringVar(&f.dtype, "dtype", "bf16", "autocast `type`: bf16 or fp16")
	flags.StringVar(&f.output, "output", "", "snapshot `file` to write, - for none (default: named after the profile)")
	return c
}

func (f *profileFlags) run(c *cobra.Command, e *env) error {
	cell, err := f.cell(c, e)
	if err != nil {
		return err
	}
	profiler, err := f.profiler(c.Context(), e, cell)
	if err != nil {
		return err
	}
	p, err := profiler.Profile(c.Context(), cell)
	if err != nil {
		return badInput("", "%w", err)
	}
	answer := report.Profile{Result: study.NewResult(cell, profiler.Engine(), p)}
	if answer.Output, err = f.write(cell, p); err != nil {
		return err
	}
	if p.OutOfMemory != nil {
		if answer.Fit, err = study.WhatFits(cell); err != nil {
			return err
		}
	}
	if p.OutOfMemory != nil {
		return e.printNo(errOutOfMemory, answer, answer.Write)
	}
	return e.print(answer, answer.Write)
}

// cell is the workload that the flags name, and how it is profiled.
func (f *profileFlags) cell(c *cobra.Command, e *env) (study.Cell, error) {
	d, err := f.draft()
	if err != nil {
		return study.Cell{}, err
	}
	phase, err := study.PhaseOf(f.profileType)
	if err != nil {
		return study.Cell{}, badUsage("", "--%w", err)
	}
	d.Set("phase", string(phase))
	if f.dtype != "bf16" && f.dtype != "fp16" {
		return study.Cell{}, badUsage("", "--dtype is %q; it must be bf16 or fp16", f.dtype)
	}
	switch {
	case f.mixed && c.Flags().Changed("precision"):
		return study.Cell{}, badUsage("", "--use-mixed-precision and --precision both set the precision; give only one")
	case f.mixed:
		d.Set("precision", "amp-"+f.dtype)
	case c.Flags().Changed("dtype"):
		return study.Cell{}, badUsage("add --use-mixed-precision", "--dtype %s only applies to mixed precision, which is off", f.dtype)
	}
	return e.cell(c, d, f.engine, f.stepFlags)
}

// cell makes a cell of a draft, with the precision that its card has.
func (e *env) cell(c *cobra.Command, d workload.Draft, engine evidence.Engine, steps *stepFlags) (study.Cell, error) {
	if err := steps.check(); err != nil {
		return study.Cell{}, err
	}
	w, err := e.finish(c.Context(), d, engine)
	if err != nil {
		return study.Cell{}, badWorkload(c, err)
	}
	card, err := e.cardOf(c.Context(), w)
	if err != nil {
		return study.Cell{}, err
	}
	w.Precision = e.mixedOn(card, w.Precision)
	return study.Cell{Workload: w, Card: card, Device: steps.device, Warmup: steps.warmup, Steps: steps.steps}, nil
}

// write writes the snapshot of a profile and returns where it is.
func (f *profileFlags) write(cell study.Cell, p *study.Profile) (string, error) {
	output := f.output
	if output == "" {
		output = study.CellName(cell.Workload) + "_snapshot.pickle"
	}
	if output == "-" || p.Trace == nil {
		return "", nil
	}
	return output, writeSnapshot(output, p.Trace)
}

func writeSnapshot(path string, t *trace.Trace) error {
	return writeFile(path, func(w io.Writer) error {
		return snapshot.Write(w, &snapshot.Snapshot{Devices: []*trace.Trace{t}})
	})
}
