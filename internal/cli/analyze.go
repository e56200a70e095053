package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

type analyzeFlags struct {
	*workloadFlags
	file        string
	globalBatch int64
	multipleOf  int64
	reserve     string
	sweep       bool
	hours       float64
	price       float64
}

func newAnalyze(e *env) *cobra.Command {
	var f analyzeFlags
	c := &cobra.Command{
		Use:   "analyze [MODEL]",
		Short: "The largest batch that trains on a card, and what yours wastes",
		Long: "Finds the largest batch that really trains on a card: forward, backward and optimizer,\n" +
			"three steps in a fresh process, with the allocator's fragmentation. Says which batch is\n" +
			"worth using, what the present one (--batch) wastes in memory, time and money, and with\n" +
			"--sweep what each single change would do.\n\n" +
			"MODEL is an id of memorymark models, or a path to a Hugging Face config.json.\n\n" +
			"With -f it answers many workloads, from a file of JSON objects, one a line, or of YAML;\n" +
			"it writes a line of JSON for each, in order.",
		Example: "  memorymark analyze bert --gpu a10\n" +
			"  memorymark analyze gpt2 --gpu rtx-4090 --precision amp-bf16 --sweep\n" +
			"  memorymark analyze ./config.json --gpu a100-80gb --global-batch 512\n" +
			"  memorymark analyze -f workloads.jsonl > answers.jsonl",
		Args: cobra.MaximumNArgs(1),
	}
	f.workloadFlags = addWorkloadFlags(c)
	c.Flags().StringVarP(&f.file, "file", "f", "", "analyze the workloads of a `file`, - for standard input")
	c.Flags().Int64Var(&f.globalBatch, "global-batch", 0, "split `N` samples for each update into batches that fit")
	c.Flags().Int64Var(&f.multipleOf, "multiple-of", 0, "only batches that are multiples of `N`")
	c.Flags().StringVar(&f.reserve, "reserve", "", "`memory` to keep free beside the context, as 512MiB")
	c.Flags().BoolVar(&f.sweep, "sweep", false, "say what each single change would do")
	c.Flags().Float64Var(&f.hours, "hours", analysis.DefaultHours, "`hours` of the card in a year")
	c.Flags().Float64Var(&f.price, "price", 0, "`dollars` for an hour of the card (default: the catalog's)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.file != "" {
			return answerFile(c, e, f.file, func(entry workload.Entry) (any, error) {
				return f.answer(c.Context(), e, entry.Draft, args)
			})
		}
		return f.one(c, e, args)
	}
	return c
}

func (f *analyzeFlags) one(c *cobra.Command, e *env, args []string) error {
	answer, err := f.answer(c.Context(), e, workload.Draft{}, args)
	if err != nil {
		return badWorkload(c, err)
	}
	return e.print(answer, report.Analysis{Answer: answer}.Write)
}

// answer analyzes a workload, with the arguments over what a file says.
func (f *analyzeFlags) answer(ctx context.Context, e *env, d workload.Draft, args []string) (*analysis.Answer, error) {
	w, err := e.finish(f.draft(d, args))
	if err != nil {
		return nil, err
	}
	card, err := e.cardOf(ctx, w)
	if err != nil {
		return nil, err
	}
	r := analysis.Request{
		Workload: w, Card: card, GlobalBatch: f.globalBatch, MultipleOf: f.multipleOf,
		HoursPerYear: f.hours, PricePerHour: f.price, Changes: f.sweep,
	}
	if f.reserve != "" {
		if r.Reserve, err = bytesize.Parse(f.reserve); err != nil {
			return nil, badUsage("write it as --reserve 512MiB", "--reserve: %w", err)
		}
	}
	for _, flag := range []struct {
		name string
		bad  bool
	}{
		{"--global-batch", f.globalBatch < 0},
		{"--multiple-of", f.multipleOf < 0},
		{"--hours", f.hours < 0},
		{"--price", f.price < 0},
	} {
		if flag.bad {
			return nil, badUsage("", "%s must not be negative", flag.name)
		}
	}
	answer, err := analysis.Predict(r)
	var small *analysis.TooSmallError
	if errors.As(err, &small) {
		return nil, badInput("memorymark gpus lists larger cards", "%w", err)
	}
	return answer, err
}
