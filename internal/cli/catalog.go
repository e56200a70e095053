package cli

import (
	"github.com/spf13/cobra"

	"memorymark/internal/gpu"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

func newModels(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "models",
		Short: "The models that have a name here",
		Long: "Lists the models of the catalog. A Hugging Face id of the list is taken wherever an id\n" +
			"is; any other model of these families can be given by its config.json.",
		Example: "  memorymark models\n" +
			"  memorymark models --json",
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			list := &report.Models{Models: workload.Models()}
			return e.print(list, list.Write)
		},
	}
}

func newGPUs(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "gpus",
		Short: "The cards that have a name here, with their memory and price",
		Long: "Lists the cards of the catalog: memory as PyTorch reports it, compute capability,\n" +
			"bandwidth, dense peak rates and a price. Every figure has its source and date in the\n" +
			"JSON.",
		Example: "  memorymark gpus\n" +
			"  memorymark gpus --json",
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			list := &report.Cards{Cards: gpu.All()}
			return e.print(list, list.Write)
		},
	}
}
