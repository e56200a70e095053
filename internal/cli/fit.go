package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"memorymark/internal/change"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/plan"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

type fitFlags struct {
	*workloadFlags
	*engineFlags
	reserve string
	full    bool
}

func newFit(e *env) *cobra.Command {
	f := fitFlags{engineFlags: &engineFlags{engine: evidence.Auto, device: engine.AutoDevice}}
	c := &cobra.Command{
		Use:   "fit MODEL",
		Short: "Find the fewest changes that make a model fit a GPU",
		Long: "Finds the fewest changes that make a model fit a GPU: precision, checkpointing, optimizer,\n" +
			"allocator, adapters, and smaller batches with gradient accumulation. The batch of an update\n" +
			"(--batch times --accumulate) stays, and so does what you set with flags. Every set of\n" +
			"changes is simulated. Sets that leave less than 2 % of the card or 300 MiB are called tight.\n\n" +
			"For a config.json of an unknown family, your PyTorch (a CUDA build) runs single changes and\n" +
			fmt.Sprintf("pairs of them on an emulated GPU, at most %d.\n\n", plan.MaxProbes) +
			"The exit code is 4 if nothing helps.",
		Example: "  memorymark fit llama-3.1-8b --gpu rtx-4090 --sequence 2048\n" +
			"  memorymark fit gpt2 --gpu t4 --batch 128 --full",
		Args: exactArgs("MODEL"),
	}
	f.workloadFlags = e.addFlagsOf(c, append(slices.Clone(planKeys), "batch", "accumulate", "gpu", "limit_gib"))
	c.Flags().StringVar(&f.reserve, "reserve", "", "`memory` to keep free in addition to the CUDA context, such as 512MiB")
	c.Flags().BoolVar(&f.full, "full", false, "train all weights: no adapters")
	f.addPython(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		defer f.close()
		return f.run(c, e, args)
	}
	return c
}

func (f *fitFlags) run(c *cobra.Command, e *env, args []string) error {
	q, err := f.question(c.Context(), e, args)
	if err != nil {
		return err
	}
	defer e.showWork(q.Work, "looking for changes with which "+q.Draft.Text("model")+" fits")()
	fit, err := plan.MakeFit(c.Context(), q)
	e.live().clear()
	switch {
	case err != nil:
		return planError(c, err)
	case !fit.Fits && len(fit.Options) == 0:
		return e.printNo(errOutOfMemory, fit, report.FitText{Fit: fit}.Write)
	}
	return e.print(fit, report.FitText{Fit: fit}.Write)
}

// question is what the flags ask. A family that is not modelled is emulated.
func (f *fitFlags) question(ctx context.Context, e *env, args []string) (q plan.FitQuestion, err error) {
	q = plan.FitQuestion{Draft: f.draft(workload.Draft{}, args), Full: f.full, Work: workOf(ctx)}
	if err := e.readConfig(ctx, q.Draft); err != nil {
		return q, err
	}
	if q.Card, err = e.namedCard(ctx, q.Draft.Text("gpu")); err != nil {
		return q, err
	}
	if q.Reserve, err = parseReserve(f.reserve); err != nil {
		return q, err
	}
	delete(q.Draft, "gpu") // which may be the path of a file
	if _, err := q.Draft.Workload(); workload.Unmodelled(err) {
		if err := f.start(ctx, e); err != nil {
			return q, err
		}
		tell := e.liveTrials(1 + plan.MaxProbes) // the workload as it is, and changes
		q.Probe = f.runner.FitProbe(ctx, q.Card, func(t change.Trial) { tell(q.Card.ID, t) })
	}
	return q, nil
}

// liveTrials shows which of at most that many processes is running, on a terminal each,
// elsewhere one now and then.
func (e *env) liveTrials(most int) func(card string, t change.Trial) {
	n, next := 0, time.Now().Add(logEvery)
	return func(card string, t change.Trial) {
		n++
		what := change.Labels(t.Changes)
		if what == "" {
			what = "as it is"
		}
		text := fmt.Sprintf("  emulating process %d of at most %d: %s, %s", n, most, card, what)
		switch l := e.live(); {
		case l.terminal:
			l.replace(text)
		case !time.Now().Before(next):
			next = time.Now().Add(logEvery)
			l.print(text)
		}
	}
}
