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
		Short: "List the models in the catalog",
		Long: "Lists the models in the catalog. Wherever an id is accepted, so is the Hugging Face id\n" +
			"shown in the list. Give any other model by its id on the Hub or by its config.json.",
		Example: "  memorymark models\n" +
			"  memorymark models --json",
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			list := &report.Models{Models: workload.Models()}
			return e.printTable(list, list.Write)
		},
	}
}

func newGPUs(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "gpus",
		Short: "List the GPUs in the catalog, with their memory and price",
		Long: "Lists the GPUs in the catalog: memory as PyTorch reports it, compute capability,\n" +
			"bandwidth, dense peak rates and price. The JSON has the source and date of every figure.\n\n" +
			"Describe any other GPU in a file with the same keys. Its name must end in .json, and every\n" +
			"--gpu accepts its path:\n\n" +
			"  {\"memory\": \"23.6 GiB\", \"compute_capability\": \"8.9\", \"multiprocessors\": 66}\n\n" +
			"These three keys are required. name, context, l2_bytes, clock_mhz, memory_clock_mhz,\n" +
			"bus_bits, ecc, bandwidth_gb_per_s, dense_tflops and price are optional; those that you\n" +
			"leave out follow from the compute capability or are taken from the most similar GPU in\n" +
			"the catalog.",
		Example: "  memorymark gpus\n" +
			"  memorymark gpus --json\n" +
			"  memorymark predict gpt2 --gpu my-card.json",
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			list := &report.CardsText{Cards: gpu.All()}
			return e.printTable(list, list.Write)
		},
	}
}
