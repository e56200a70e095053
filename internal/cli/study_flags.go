package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"memorymark/internal/study"
	"memorymark/internal/workload"
)

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

func addStudyFlags(c *cobra.Command, keys ...string) *studyFlags {
	f := &studyFlags{workloadFlags: addFlagsOf(c, append(keys, "gpu"))}
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

// profileKeys are the keys of a workload that a profile can set beside those
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

// mostSteps keeps snapshots within what viewers open.
const mostSteps = 100

func (f *stepFlags) check() error {
	switch {
	case f.warmup < 0:
		return badUsage("", "--warmup-steps is %d; it must not be negative", f.warmup)
	case f.steps < 1 || f.steps > mostSteps:
		return badUsage("", "--measure-steps is %d; it must be 1 to %d", f.steps, mostSteps)
	case !deviceName.MatchString(f.device):
		return badUsage("", "--device is %q; it must be cuda, cuda:1, mps, cpu or auto", f.device)
	}
	return nil
}
