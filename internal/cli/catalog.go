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
			return e.printTable(list, list.Write)
		},
	}
}

func newGPUs(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "gpus",
		Short: "The cards that have a name here, with their memory and price",
		Long: "Lists the cards of the catalog: memory as PyTorch reports it, compute capability,\n" +
			"bandwidth, dense peak rates and a price. Every figure has its source and date in the\n" +
			"JSON.\n" +
			"\n" +
			"A card that is not in the list can be described in a file. It has the keys of that JSON,\n" +
			"its name ends in .json, and every --gpu takes its path:\n" +
			"\n" +
			`  {"memory": "23.6 GiB", "compute_capability": "8.9", "multiprocessors": 66}` + "\n" +
			"\n" +
			"These three keys are needed. Give those of name, context, l2_bytes, clock_mhz,\n" +
			"memory_clock_mhz, bus_bits, ecc, bandwidth_gb_per_s, dense_tflops and price that you know;\n" +
			"the others follow from the compute capability, or are those of the card in the list that\n" +
			"is most like yours.",
		Example: "  memorymark gpus\n" +
			"  memorymark gpus --json\n" +
			"  memorymark predict gpt2 --gpu my-card.json",
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			list := &report.Cards{Cards: gpu.All()}
			return e.printTable(list, list.Write)
		},
	}
}
