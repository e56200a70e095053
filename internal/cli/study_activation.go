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
		Short: "Derive the activation memory of a language model, tensor by tensor",
		Long: "Derives the size of one residual-stream tensor, batch × context × d_model × 4 bytes,\n" +
			"in symbols and in numbers, and that of the attention scores. Lists every tensor that a\n" +
			"block allocates in forward and whether it is saved for backward, and compares the sum\n" +
			"over all layers with the peak of a training step in fp32.",
		Example: "  memorymark study activation\n" +
			"  memorymark study activation --model-size xl --context-length 1024 --batch-size 8\n" +
			"  memorymark study activation --model-size small --json",
		Args: exactArgs(),
	}
	f := addStudyFlags(e, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, err := f.draft()
		if err != nil {
			return err
		}
		w, err := e.finish(c.Context(), d, evidence.Predicted)
		if err != nil {
			return badWorkload(c, err)
		}
		card, err := e.cardOf(c.Context(), w)
		if err != nil {
			return err
		}
		a, err := study.NewActivation(w, card, workOf(c.Context()))
		if err != nil {
			return err
		}
		return e.printTable(a, report.Activation{Activation: a}.Write)
	}
	return c
}
