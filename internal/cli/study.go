package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

func newStudy(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "study",
		Short: "Study the memory of a step: by phase, over grids, by tensor, as a report",
		Long: "Profiles what the phases of a training step take: of one workload, of a grid of workloads,\n" +
			"of a block's tensors, and as a report with all of it. Without --model or --model-size, the\n" +
			"commands study a reference language model.",
		Example: "  memorymark study profile gpt2 --batch 8\n" +
			"  memorymark study sweep --model-size small,xl --context-length 128,256,512,1024 -o contexts.svg",
		Args: cobra.ArbitraryArgs,
		RunE: runGroup,
	}
	c.AddCommand(studyCommands(e)...)
	return c
}

func studyCommands(e *env) []*cobra.Command {
	return []*cobra.Command{newProfile(e), newSweep(e), newActivation(e), newReport(e)}
}

// studyFlags are the flags of the commands that study one workload. The names
// are those that people who profile language models type; further keys of a
// workload go by their own.
type studyFlags struct {
	*workloadFlags
	size    string
	model   string
	context string
	batch   string
}

// takeKeyNames lets the flags of a study that are keys of a workload go by the
// names of the keys.
func takeKeyNames(c *cobra.Command) {
	alsoNamed(c, "batch-size", "batch")
	alsoNamed(c, "context-length", "sequence")
}

func addStudyFlags(e *env, c *cobra.Command, keys ...string) *studyFlags {
	f := &studyFlags{workloadFlags: e.addFlagsOf(c, append(keys, "gpu"))}
	takeKeyNames(c)
	flags := c.Flags()
	flags.StringVar(&f.size, "model-size", "2.7B", "`size` of the reference language model: "+strings.Join(study.Sizes, ", "))
	flags.StringVar(&f.context, "context-length", "512", "tokens per sample (default 512); also --sequence")
	flags.StringVar(&f.batch, "batch-size", "4", "samples per step (default 4); also --batch")
	for _, name := range []string{"context-length", "batch-size"} {
		flags.Lookup(name).DefValue = "" // help would quote it
		showValueAs(flags, name, "N")
	}
	return f
}

// profileKeys are the keys of a workload that a profile can set in addition to those
// that have flags of their own.
var profileKeys = []string{
	"precision", "image", "optimizer", "optimizer_impl", "loss", "attention", "checkpointing", "channels_last", "accumulate", "clip_grad_norm",
	"expandable_segments", "limit_gib", "config",
}

// takeModel takes the model that is given as an argument, as for the other
// commands, or as a flag.
func (f *studyFlags) takeModel(args []string) error {
	switch {
	case len(args) == 0:
	case f.model != "" || f.set.Changed("model-size"):
		return badUsage("", "%s, --model and --model-size all name models; give only one", args[0])
	default:
		f.model = args[0]
	}
	return nil
}

// draft is the workload that the flags name.
func (f *studyFlags) draft() (workload.Draft, error) {
	d := workload.Draft{}
	if f.model != "" {
		d.Set("model", f.model)
	} else {
		id, err := study.ModelOf(f.size)
		if err != nil {
			return nil, badUsage("", "--%w", err)
		}
		d.Set("model", id)
	}
	for _, n := range []struct{ flag, key, text string }{
		{"context-length", "sequence", f.context}, {"batch-size", "batch", f.batch},
	} {
		if err := positiveFlag(n.flag, n.text); err != nil {
			return nil, err
		}
		d.Set(n.key, n.text)
	}
	f.apply(d)
	return d, nil
}

// positiveFlag checks a number that a workload would call by another name.
func positiveFlag(flag, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return badUsage(fmt.Sprintf("write it as --%s 512", flag), "--%s is %q; it must be a whole number", flag, text)
	case n < 1:
		return badUsage("", "--%s is %d; it must be at least 1", flag, n)
	}
	return nil
}

// stepFlags say how a cell is profiled.
type stepFlags struct {
	warmup, steps int
	device        string
}

func addStepFlags(c *cobra.Command, warmup, steps int) *stepFlags {
	f := &stepFlags{}
	c.Flags().IntVar(&f.warmup, "warmup-steps", warmup, "warm-up steps, which are not recorded")
	c.Flags().IntVar(&f.steps, "measure-steps", steps, "steps to record")
	for _, name := range []string{"warmup-steps", "measure-steps"} {
		showValueAs(c.Flags(), name, "N")
	}
	c.Flags().StringVar(&f.device, "device", "cuda", "`device` to measure on: cuda, cuda:1, mps, cpu or auto")
	return f
}

// maxSteps keeps snapshots within what viewers open.
const maxSteps = 100

func (f *stepFlags) check() error {
	switch {
	case f.warmup < 0:
		return badUsage("", "--warmup-steps is %d; it must not be negative", f.warmup)
	case f.steps < 1 || f.steps > maxSteps:
		return badUsage("", "--measure-steps is %d; it must be 1 to %d", f.steps, maxSteps)
	case !deviceName.MatchString(f.device):
		return badUsage("", "--device is %q; it must be cuda, cuda:1, mps, cpu or auto", f.device)
	}
	return nil
}

// profiler returns who profiles the cells of a study: this machine's GPU, or a
// prediction. The first cell says what to import.
func (f *engineFlags) profiler(ctx context.Context, e *env, first study.Cell) (study.Profiler, error) {
	if f.device = first.Device; f.device == "" || f.device == "cuda" {
		f.device = engine.AutoDevice // the usual one, wherever it is found
	}
	if f.engine == evidence.Predicted && (f.device == "cpu" || f.device == "mps") {
		return nil, badUsage("leave --device out", "--device %s: predictions are for the CUDA allocator", f.device)
	}
	if err := f.start(ctx, e); err != nil {
		return nil, err
	}
	p, err := f.runner.Profiler(ctx, f.engine, first)
	return p, explainUnable(err, nil)
}
