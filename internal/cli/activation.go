package cli

import (
	"github.com/spf13/cobra"

	"memorymark/internal/evidence"
	"memorymark/internal/report"
	"memorymark/internal/study"
)

func newActivation(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "activation",
		Short: "How large the activations of a language model are, step by step",
		Long: "Derives the size of one tensor of the residual stream, batch × context × d_model ×\n" +
			"4 bytes, in symbols and in numbers, and the attention scores beside it; lists every\n" +
			"tensor that a block makes in forward, and whether it is saved for backward; and holds\n" +
			"all of it, times the layers, against the peak of a training step in fp32.",
		Example: "  memorymark activation\n" +
			"  memorymark activation --model-size xl --context-length 1024 --batch-size 8\n" +
			"  memorymark activation --model-size small --json",
		Args: exactArgs(),
	}
	f := addStudyFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, err := f.draft()
		if err != nil {
			return err
		}
		w, err := e.finish(d, evidence.Predicted)
		if err != nil {
			return badWorkload(c, err)
		}
		card, err := e.cardOf(c.Context(), w)
		if err != nil {
			return err
		}
		a, err := study.NewActivation(w, card)
		if err != nil {
			return err
		}
		return e.printTable(a, report.Activation{Activation: a}.Write)
	}
	return c
}
