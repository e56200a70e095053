package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memorymark/internal/draw"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/plan"
	"memorymark/internal/report"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

// planKeys are the keys of a workload that a plan takes; it chooses the others.
var planKeys = []string{
	"config", "sequence", "image", "precision", "optimizer", "optimizer_impl", "loss", "attention", "attention_mask",
	"checkpointing", "channels_last", "mode", "clip_grad_norm", "loop", "expandable_segments", "adapter", "quantize", "versions",
}

type planFlags struct {
	*workloadFlags
	*engineFlags
	plan.Question
	cards, mine, within string
	amount              amountFlags
	price               string
	own                 []*gpu.Card // that the table of prices describes
	loader              loaderFlag
	reserve             string
	outputs             []string
	all                 bool
	style               draw.Style
}

func newPlan(e *env) *cobra.Command {
	f := planFlags{engineFlags: &engineFlags{engine: evidence.Auto, device: engine.AutoDevice}}
	c := &cobra.Command{
		Use:   "plan MODEL",
		Short: "Plan what to train a model on, and how, by cost and by time",
		Long: "Plans what to train a model on, and how. It compares GPUs, how many of them, parallelism,\n" +
			"precision, checkpointing, adapters, 8-bit optimizers and batch sizes. The answer is the\n" +
			"cheapest setup, the fastest, and the one with the fewest changes, each with the\n" +
			"Python program to paste.\n\n" +
			"What you set with flags stays as it is; the plan chooses the rest. It simulates every\n" +
			"setup that it shows: three steps of the rank that needs the most memory. Times are\n" +
			"by a time model of steps and of what NCCL moves over links, costs by the catalog's prices.\n\n" +
			"For a config.json of an unknown family, your PyTorch (a CUDA build) runs the usual setups\n" +
			fmt.Sprintf("for one GPU on emulated cards, at most %d processes.\n\n", plan.MaxProbes) +
			"-o writes a chart of cost against time (.svg or .png), or the plan (.json).\n\n" +
			"The exit code is 4 if nothing fits.",
		Example: "  memorymark plan llama-3.1-8b --sequence 2048 --tokens 1B\n" +
			"  memorymark plan llama-3.1-8b --full --within '$500, 3 days' -o plan.png\n" +
			"  memorymark plan bert --mine 'rtx-4090 x2, a100-80gb' --samples 10M\n" +
			"  memorymark plan ./config.json --cards h100,h200 --max-gpus 16 --global-batch 256",
		Args: exactArgs("MODEL"),
	}
	f.workloadFlags = e.addFlagsOf(c, planKeys)
	flags := c.Flags()
	flags.StringVar(&f.cards, "cards", "", "use only these `cards`, separated by commas (default: all in the catalog with a list price from this year)")
	flags.StringVar(&f.mine, "mine", "", "plan for the `cards` that you have, such as 'rtx-4090 x2, a100-80gb', instead of rented ones")
	flags.Int64Var(&f.MaxGPUs, "max-gpus", plan.DefaultMaxGPUs, "maximum `number` of GPUs")
	flags.Int64Var(&f.GlobalBatch, "global-batch", plan.DefaultGlobalBatch, "the `samples` of an update, over all GPUs")
	f.amount.add(flags, "`number` of tokens to train on, such as 500M (default 1B)",
		"the `number` of samples to train on, instead of tokens (default 1M images)")
	flags.StringVar(&f.within, "within", "", "maximum cost, time or both: `bounds` such as '$500, 3 days'")
	flags.BoolVar(&f.Full, "full", false, "train all weights: no adapters")
	flags.StringVar(&f.price, "prices", "", "a `file` of prices instead of the catalog's: CSV with gpu, usd_per_hour, provider, market and as_of, or YAML, which may describe cards")
	f.loader.add(flags)
	flags.StringVar(&f.reserve, "reserve", "", "`memory` to keep free on every card, such as 512MiB")
	flags.BoolVar(&f.all, "all", false, "show all that fits, and why the rest does not")
	f.addPython(flags)
	flags.StringArrayVarP(&f.outputs, "output", "o", nil, "`file` to write; may be repeated")
	flags.StringVar(&f.style.Title, "title", "", "`text` above a picture")
	flags.BoolVar(&f.style.Light, "light", false, "draw charts on a white background, for print")
	c.RunE = func(c *cobra.Command, args []string) error {
		defer f.close()
		return f.run(c, e, args)
	}
	return c
}

func (f *planFlags) run(c *cobra.Command, e *env, args []string) error {
	for _, o := range f.outputs {
		if planFormats[formatOf(o)] == nil {
			return badUsage("", "--output %s: the name must end in .txt, .json, .svg or .png", o)
		}
	}
	f.Draft = f.draft(workload.Draft{}, args)
	if err := f.read(c.Context(), e); err != nil {
		return err
	}
	if _, err := f.Draft.Workload(); workload.Unmodelled(err) {
		if err := f.start(c.Context(), e); err != nil {
			return err
		}
		f.Emulation = &engine.PlanEmulation{Runner: f.runner, Ctx: c.Context(), Tell: e.liveTrials(plan.MaxProbes)}
	}
	// Thousands of short-lived traces: collecting them less often takes a fifth
	// of the time away, as long as they take no more than a gigabyte.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), 1<<30)))
	progress := e.newPartProgress("parts")
	tell := func(done, of int) { progress.tell(study.RunProgress{Done: done, Total: of}) }
	if f.Emulation != nil {
		tell = nil // its processes are told of
	}
	f.Work = workOf(c.Context())
	p, err := plan.Make(c.Context(), f.Question, tell)
	progress.end(nil, "")
	if err != nil {
		return planError(c, err)
	}
	out := report.PlanText{Plan: p, All: f.all}
	for _, o := range f.outputs {
		if err := writeFile(o, func(w io.Writer) error { return planFormats[formatOf(o)](out, w, f.style) }); err != nil {
			return err
		}
	}
	if len(p.Options) == 0 {
		why := errOutOfMemory
		if f.within != "" {
			why = errNo // it may fit, and cost or take too much
		}
		return e.printNo(why, p, out.Write)
	}
	return e.print(p, out.Write)
}

// planError says of what is wrong with a question that it is the command line's, and of
// what is wrong with PyTorch how to fix it.
func planError(c *cobra.Command, err error) error {
	var unable *engine.UnableError
	var failed *measure.Failure
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &unable), errors.As(err, &failed):
		return explainUnable(err, nil)
	default:
		return badWorkload(c, err)
	}
}

var planFormats = map[string]func(report.PlanText, io.Writer, draw.Style) error{
	"text": func(p report.PlanText, w io.Writer, _ draw.Style) error {
		return report.WriteText(w, fileWidth, p.Write)
	},
	"json": func(p report.PlanText, w io.Writer, _ draw.Style) error { return writeJSON(w, p.Plan) },
	"svg":  report.PlanText.SVG,
	"png":  report.PlanText.PNG,
}

// read takes what flags say into the question.
func (f *planFlags) read(ctx context.Context, e *env) (err error) {
	if err := e.readConfig(ctx, f.Draft); err != nil {
		return err
	}
	if f.MaxGPUs < 1 || f.GlobalBatch < 1 {
		return badUsage("", "--max-gpus and --global-batch must be at least 1")
	}
	if err := f.amount.read(&f.Tokens, &f.Samples); err != nil {
		return err
	}
	if f.within != "" {
		if f.Within, err = plan.ParseBudget(f.within); err != nil {
			return badUsage("", "--within: %w", err)
		}
	}
	if f.Reserve, err = parseReserve(f.reserve); err != nil {
		return err
	}
	if err := f.loader.check(); err != nil {
		return err
	}
	f.LoaderSeconds = f.loader.seconds
	if err := f.readPrices(e); err != nil {
		return err
	}
	return f.readCards(e)
}

func (f *planFlags) readPrices(e *env) error {
	if f.price == "" {
		return nil
	}
	data, err := e.readAll(f.price)
	if err != nil {
		return err
	}
	switch strings.ToLower(filepath.Ext(f.price)) {
	case ".yaml", ".yml", ".json":
		f.Prices, f.own, err = plan.ReadPriceList(data)
	default:
		f.Prices, err = plan.ReadPrices(bytes.NewReader(data))
	}
	if err != nil {
		return badInput("memorymark plan --help has the columns; docs/guide/what-to-train-on.md has an example of each kind of file", "%s: %w", f.price, err)
	}
	return nil
}

// findCard finds a card of the table of prices, or another.
func (f *planFlags) findCard(e *env) func(string) (*gpu.Card, error) {
	return func(name string) (*gpu.Card, error) {
		for _, card := range f.own {
			if card.ID == name {
				return card, nil
			}
		}
		return e.findCard(name)
	}
}

// readCards finds the cards: those that the user has, those that were named,
// those of the table of prices, or those of the catalog with a price.
func (f *planFlags) readCards(e *env) (err error) {
	switch {
	case f.mine != "" && f.cards != "":
		return badUsage("give one of them", "--mine and --cards both name cards")
	case f.mine != "":
		if f.Cards, err = plan.ParseHoldings(f.mine, f.findCard(e)); err != nil {
			return badUsage("write it as --mine 'rtx-4090 x2, a100-80gb'", "--mine: %w", err)
		}
	case f.cards != "":
		for name := range strings.SplitSeq(f.cards, ",") {
			card, err := f.findCard(e)(strings.TrimSpace(name))
			if err != nil {
				return err
			}
			f.Cards = append(f.Cards, plan.Holding{Card: card})
		}
	case f.Prices != nil:
		for _, card := range slices.Concat(gpu.All(), f.own) {
			if f.Prices[card.ID] != nil {
				f.Cards = append(f.Cards, plan.Holding{Card: card})
			}
		}
	default:
		f.Cards = plan.Cards()
	}
	return nil
}
