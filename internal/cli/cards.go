package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"memorymark/internal/analysis"
	"memorymark/internal/gpu"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

func newCards(e *env) *cobra.Command {
	var f *workloadFlags
	c := &cobra.Command{
		Use:   "cards MODEL",
		Short: "Which cards a workload trains on",
		Long: "Says for every card of the catalog whether a workload trains on it, the largest batch\n" +
			"that does, the batch worth using, how fast that is, and what a million samples cost.\n" +
			"All of it is predicted.\n\n" +
			"The exit code is 1 if the workload, at its batch, trains on none of them.",
		Example: "  memorymark cards bert --batch 64\n" +
			"  memorymark cards llama-3.1-8b --precision bf16 --checkpointing\n" +
			"  memorymark cards ./config.json --json",
		Args: exactArgs("MODEL"),
	}
	f = addFlagsOf(c, slices.DeleteFunc(workload.KeyNames(), func(key string) bool { return key == "gpu" || key == "limit_gib" }))
	c.RunE = func(c *cobra.Command, args []string) error {
		w, err := e.finish(f.draft(workload.Draft{}, args))
		if err != nil {
			return badWorkload(c, err)
		}
		rows, err := analysis.CompareCards(c.Context(), analysis.Request{Workload: w}, gpu.All())
		if err != nil {
			return err
		}
		list := &report.OnCards{Workload: w, Cards: rows}
		if !slices.ContainsFunc(rows, func(r analysis.OnCard) bool { return r.Fits }) {
			return e.printNo(list, list.Write)
		}
		return e.printTable(list, list.Write)
	}
	return c
}
