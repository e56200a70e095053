package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"memorymark/internal/analysis"
	"memorymark/internal/change"
	"memorymark/internal/engine"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

type analyzeFlags struct {
	*workloadFlags
	*engineFlags
	analysis.Question
	amount    amountFlags
	reserve   string
	price     float64
	maxProbes int
	noTiming  bool
	file      string
}

func newAnalyze(e *env) *cobra.Command {
	var f analyzeFlags
	c := &cobra.Command{
		Use:   "analyze [MODEL]",
		Short: "Find the largest batch that trains on a GPU, and what yours wastes",
		Long: "Finds the largest batch that really trains on a GPU: forward, backward and optimizer\n" +
			"step, three times in a fresh process, including fragmentation. Recommends a batch, shows\n" +
			"what your current one (--batch) wastes in memory, time and money, and with --sweep what\n" +
			"each single change would do.\n\n" +
			"On a machine with a CUDA GPU and PyTorch it measures: it runs real steps, starting at the\n" +
			"predicted limit. On other machines, and for other GPUs, it predicts. Your own function, if\n" +
			"not all of its source is known, or a config.json of an unknown family, is emulated: your\n" +
			"PyTorch (a CUDA build) runs on an emulated GPU. The answer says which engine was used;\n" +
			"--engine chooses one.\n\n" +
			"MODEL is an id from memorymark models or of the Hugging Face Hub, a path to a config.json,\n" +
			"or your own function, train.py:make, that returns a model, optionally with a function\n" +
			"batch(n) and a function that makes the optimizer from model.parameters().\n\n" +
			"With -f it analyzes many workloads from a file, as JSON objects, one per line, or as YAML.\n" +
			"It writes one line of JSON per workload, in order.\n\n" +
			"The exit code is 4 if no batch trains; with -f, if that is so for any workload.",
		Example: "  memorymark analyze bert --gpu a10\n" +
			"  memorymark analyze gpt2 --gpu rtx-4090 --precision amp-bf16 --sweep\n" +
			"  memorymark analyze train.py:make --gpu rtx-4090 --multiple-of 8\n" +
			"  memorymark analyze bert --engine measured --limit 22GiB\n" +
			"  memorymark analyze ./config.json --gpu a100-80gb --global-batch 512\n" +
			"  memorymark analyze llama-3.2-1b --gpu h100 --tokens 1B\n" +
			"  memorymark analyze -f workloads.jsonl > answers.jsonl",
		Args: someArgs(0, "MODEL"),
	}
	f.workloadFlags = e.addWorkloadFlags(c)
	f.engineFlags = addEngineFlags(c)
	f.addDevice(c.Flags())
	c.Flags().IntVar(&f.maxProbes, "max-probes", 0, fmt.Sprintf("maximum number of batches to try when measuring (default %d)", engine.DefaultProbes))
	showValueAs(c.Flags(), "max-probes", "N")
	c.Flags().StringVarP(&f.file, "file", "f", "", "analyze the workloads in a `file`, - for standard input")
	c.Flags().Int64Var(&f.GlobalBatch, "global-batch", 0, "split `N` samples per optimizer step into batches that fit")
	c.Flags().Int64Var(&f.MultipleOf, "multiple-of", 0, "consider only multiples of `N`")
	c.Flags().StringVar(&f.reserve, "reserve", "", "`memory` to keep free in addition to the CUDA context, such as 512MiB")
	c.Flags().BoolVar(&f.Changes, "sweep", false, "show what each single change would do")
	c.Flags().Float64Var(&f.HoursPerYear, "hours", analysis.DefaultHours, "`hours` per year that the GPU runs")
	c.Flags().Float64Var(&f.price, "price", 0, "price of the GPU in `dollars` per hour (default: the catalog's)")
	f.amount.add(c.Flags(), "show the time and cost of a run over this `number` of tokens, such as 1B",
		"show the time and cost of a run over this `number` of samples, instead of tokens")
	c.Flags().BoolVar(&f.noTiming, "no-timing", false, "when measuring, find the largest batch but do not time steps")
	c.RunE = func(c *cobra.Command, args []string) error {
		defer f.close()
		if c.Flags().Changed("price") {
			f.PricePerHour = &f.price
		}
		if err := f.start(c.Context(), e); err != nil {
			return err
		}
		if f.file != "" {
			return answerFile(c, e, f.file, func(ctx context.Context, entry workload.Entry) (any, error) {
				a, err := f.answer(ctx, e, entry.Draft, args)
				if no := analysis.Refusal(err); no != nil {
					return no, errOutOfMemory
				}
				return a, err
			})
		}
		return f.one(c, e, args)
	}
	return c
}

func (f *analyzeFlags) one(c *cobra.Command, e *env, args []string) error {
	answer, err := f.answer(c.Context(), e, workload.Draft{}, args)
	no := analysis.Refusal(err)
	switch {
	case no != nil:
		return e.printNo(errOutOfMemory, no, report.Analysis{Answer: no}.Write)
	case err != nil:
		return badWorkload(c, f.explain(e, err))
	}
	return e.print(answer, report.Analysis{Answer: answer}.Write)
}

// explain says what to do where nothing is left, and shows what is known when
// measuring ended early.
func (f *analyzeFlags) explain(e *env, err error) error {
	var (
		early *engine.UnfinishedError
		left  *analysis.NothingLeftError
	)
	switch {
	case errors.As(err, &left):
		return badInput("use a smaller --reserve or a larger card", "%w", err)
	case errors.As(err, &early):
		if slices.ContainsFunc(early.Probes, func(p analysis.Probe) bool { return p.Success || p.Failure.TooBig() }) {
			fmt.Fprintln(e.stderr)
			_ = writeText(e.stderr, e.width(pipeWidth), report.Probes(early.Probes).Write)
			fmt.Fprintln(e.stderr)
		}
		return &failure{code: exitCode(err), err: err}
	}
	return err
}

// answer analyzes a workload, with the arguments over what a file says.
func (f *analyzeFlags) answer(ctx context.Context, e *env, d workload.Draft, args []string) (*analysis.Answer, error) {
	d = f.draft(d, args)
	r, user, err := f.request(ctx, e, d)
	if err != nil {
		return nil, err
	}
	r.Given, r.Work = change.Given(d), workOf(ctx)
	if f.file == "" && user == nil {
		defer e.showWork(r.Work, "predicting "+r.Workload.Name())()
	}
	if r.Question, err = f.question(); err != nil {
		return nil, err
	}
	if r.RunTokens > 0 && r.Workload.TakesImages() {
		return nil, badUsage("give the number of images, as --samples 1M", "--tokens: %s trains on images", r.Workload.Name())
	}
	m := engine.Measurement{User: user, MaxProbes: f.maxProbes, NoTiming: f.noTiming, Progress: e.liveEvents()}
	a, err := f.runner.Answer(ctx, f.engine, r, m)
	return a, explainUnable(err, user)
}

// question checks the flags and puts them together.
func (f *analyzeFlags) question() (q analysis.Question, err error) {
	q = f.Question
	if q.Reserve, err = parseReserve(f.reserve); err != nil {
		return q, err
	}
	if err := f.amount.read(&q.RunTokens, &q.RunSamples); err != nil {
		return q, err
	}
	for _, flag := range []struct {
		name string
		bad  bool
	}{
		{"--global-batch", q.GlobalBatch < 0},
		{"--multiple-of", q.MultipleOf < 0},
		{"--max-probes", f.maxProbes < 0},
	} {
		if flag.bad {
			return q, badUsage("", "%s must not be negative", flag.name)
		}
	}
	for _, flag := range []struct {
		name       string
		value, max float64
	}{
		{"--hours", q.HoursPerYear, analysis.MaxHours},
		{"--price", f.price, analysis.MaxPrice},
	} {
		if !(flag.value >= 0 && flag.value <= flag.max) { // NaN is neither
			return q, badUsage("", "%s is %g; it must be from 0 to %.0f", flag.name, flag.value, flag.max)
		}
	}
	return q, nil
}
