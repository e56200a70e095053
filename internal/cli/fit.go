package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"memorymark/internal/bytesize"
	"memorymark/internal/plan"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

func newFit(e *env) *cobra.Command {
	var flags *workloadFlags
	var reserve string
	var full bool
	c := &cobra.Command{
		Use:   "fit MODEL",
		Short: "Find the fewest changes that make a model fit a GPU",
		Long: "Finds the fewest changes that make a model fit a GPU: precision, checkpointing, optimizer,\n" +
			"allocator, adapters, and smaller batches with gradient accumulation. The batch of an update\n" +
			"(--batch times --accumulate) stays, and so does what you set with flags. Every set of\n" +
			"changes is simulated. Sets that leave less than 2 % of the card or 300 MiB are called tight.\n\n" +
			"The exit code is 1 if nothing helps.",
		Example: "  memorymark fit llama-3.1-8b --gpu rtx-4090 --sequence 2048\n" +
			"  memorymark fit gpt2 --gpu t4 --batch 128 --full",
		Args: exactArgs("MODEL"),
	}
	flags = addFlagsOf(c, append(slices.Clone(planKeys), "batch", "accumulate", "gpu", "limit_gib"))
	c.Flags().StringVar(&reserve, "reserve", "", "`memory` to keep free in addition to the CUDA context, such as 512MiB")
	c.Flags().BoolVar(&full, "full", false, "train all weights: no adapters")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		d := flags.draft(workload.Draft{}, args)
		if err := e.readConfig(d); err != nil {
			return err
		}
		card, err := e.namedCard(c.Context(), d.Text("gpu"))
		if err != nil {
			return err
		}
		var keep bytesize.Bytes
		if reserve != "" {
			if keep, err = bytesize.Parse(reserve); err != nil {
				return badUsage("write it as --reserve 512MiB", "--reserve: %w", err)
			}
		}
		delete(d, "gpu") // which may be the path of a file
		work := effortOf(c.Context())
		defer e.showWork(work, "looking for changes with which "+d.Text("model")+" fits")()
		fit, err := plan.MakeFit(c.Context(), plan.FitQuestion{Draft: d, Card: card, Reserve: keep, Full: full, Effort: work})
		switch {
		case err != nil:
			return planError(c, err)
		case !fit.Fits && len(fit.Options) == 0:
			return e.printNo(fit, report.Fit{Fit: fit}.Write)
		}
		return e.print(fit, report.Fit{Fit: fit}.Write)
	}
	return c
}
