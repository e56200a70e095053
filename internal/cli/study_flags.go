package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"memorymark/internal/gpu"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

// studyFlags are the flags of the commands that study one workload. The names
// are those that people who profile language models type.
type studyFlags struct {
	size    string
	model   string
	context string
	batch   string
	gpu     string
}

func addStudyFlags(c *cobra.Command) *studyFlags {
	f := &studyFlags{}
	flags := c.Flags()
	flags.StringVar(&f.size, "model-size", "2.7B", "`size` of the plain language model: small, medium, large, xl or 2.7B")
	flags.StringVar(&f.context, "context-length", "512", "`N` tokens in a sample")
	flags.StringVar(&f.batch, "batch-size", "4", "`N` samples in a step")
	flags.StringVar(&f.gpu, "gpu", "", "an `id` of memorymark gpus to predict for (default: this machine's card, else "+studyCard+")")
	return f
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
	if f.gpu != "" {
		d.Set("gpu", f.gpu)
	}
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

// studyCard is the card that studies are predicted for where there is none:
// the one that the predictions were measured on, and large enough for the
// sizes that are studied.
const studyCard = "h200"

// studyCardOf returns the card of a workload: the one it names, this
// machine's, or the one for studies.
func (e *env) studyCardOf(ctx context.Context, w *workload.Workload) (*gpu.Card, error) {
	if w.GPU == "" && e.machineCard(ctx) == nil {
		w.GPU = studyCard
	}
	return e.cardOf(ctx, w)
}
