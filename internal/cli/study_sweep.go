package cli

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"memorymark/internal/draw"
	"memorymark/internal/evidence"
	"memorymark/internal/report"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

type sweepFlags struct {
	*engineFlags
	*stepFlags
	set     *pflag.FlagSet
	outputs []string
	format  string
	resume  string
	style   draw.Style
}

func newSweep(e *env) *cobra.Command {
	var f sweepFlags
	c := &cobra.Command{
		Use:   "sweep [MODEL]",
		Short: "Profile a grid of workloads, as a table or a chart",
		Long: "Profiles every combination of the given values: each key of a workload takes one value\n" +
			"or several, separated by commas. Predictions use all cores; measurements run one after\n" +
			"another. A cell that does not fit on the GPU says so and the others continue; the exit\n" +
			"code is then 1.\n\n" +
			"The table goes to standard output. -o also writes files, in the format that the file name\n" +
			"says: .txt, .md, .csv, .json, .svg or .png. With --resume, finished cells are kept in a\n" +
			"file, and the same command continues where it stopped.",
		Example: "  memorymark study sweep\n" +
			"  memorymark study sweep --model-size small,xl --context-length 128,256,512,1024 -o contexts.svg\n" +
			"  memorymark study sweep gpt2 --batch 1,2,4,8,16 --checkpointing false,true --format markdown",
		Args: someArgs(0, "MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			defer f.close()
			if err := f.takeModels(args); err != nil {
				return err
			}
			return f.run(c, e)
		},
	}
	f.engineFlags = addEngineFlags(c)
	f.stepFlags = addStepFlags(c, study.DefaultWarmup, study.DefaultSteps)
	f.addAxes(c)
	flags := c.Flags()
	flags.StringArrayVarP(&f.outputs, "output", "o", nil, "`file` to write; may be repeated")
	flags.StringVar(&f.format, "format", "text", "output `format`: text, markdown, csv, json, svg or png")
	flags.StringVar(&f.resume, "resume", "", "keep finished cells in a `file`, and reuse those already in it")
	flags.StringVar(&f.style.Title, "title", "", "title `text` of charts")
	flags.BoolVar(&f.style.Light, "light", false, "draw charts on a white background, for print")
	flags.IntVar(&f.style.Width, "width", 0, "chart width in `pixels` (default 1600)")
	flags.IntVar(&f.style.Height, "height", 0, "chart height in `pixels` (default 900)")
	return c
}

// sweepAxes are the flags that have names of their own, in the order in which
// tables show them, the key that each stands for, and its default.
var sweepAxes = []struct{ flag, key, values, help string }{
	{"model-size", "model", "small,medium,large,xl,2.7B", "`sizes` of the reference language model"},
	{"context-length", "sequence", "128,256,512", "context `lengths` in tokens; also --sequence"},
	{"profile-type", "phase", "forward,training", "`parts` of a step to run: forward, backward, training, inference"},
	{"precision", "precision", "fp32,amp-bf16", "`precisions`: fp32, tf32, amp-bf16, amp-fp16, bf16"},
	{"batch-size", "batch", "4", "`batches`: samples per step; also --batch"},
}

func (f *sweepFlags) addAxes(c *cobra.Command) {
	flags := c.Flags()
	takeKeyNames(c)
	flags.String("model", "", "the models, like the argument MODEL: `ids` from memorymark models, or paths to config.json")
	for _, a := range sweepAxes {
		flags.String(a.flag, "", a.help+" (default "+a.values+")")
	}
	for _, key := range workload.Keys() {
		if name := flagName(key.Name); flags.Lookup(name) == nil && key.Name != "phase" && key.Name != "id" {
			flags.String(name, "", flagHelp(key))
			word := key.Unit
			if key.Kind == workload.Switch {
				word = "false,true"
			}
			showValueAs(flags, name, word)
			takeAlso(c, key)
		}
	}
	f.set = flags
}

func (f *sweepFlags) run(c *cobra.Command, e *env) error {
	if err := f.checkOutputs(); err != nil {
		return err
	}
	grid, err := f.grid(c.Context(), e)
	if err != nil {
		return err
	}
	points := grid.Points()
	cells, err := f.cells(c, e, points)
	if err != nil {
		return err
	}
	first := cells[slices.IndexFunc(cells, func(c study.Cell) bool { return c.Err == nil })]
	profiler, err := f.profiler(c.Context(), e, first)
	if err != nil {
		return err
	}
	results, err := f.profile(c, e, profiler, cells)
	if err != nil {
		return err
	}
	sweep := &study.Sweep{Axes: grid.Axes}
	wrong := 0
	for i, r := range results {
		sweep.Cells = append(sweep.Cells, study.SweepCell{Values: points[i].Values, Result: r})
		if r.Error != "" {
			wrong++
		}
	}
	if err := f.write(e, sweep); err != nil {
		return err
	}
	if wrong > 0 {
		return badInput("", "%d of %d cells failed; their lines say why", wrong, len(cells))
	}
	if slices.ContainsFunc(results, func(r *study.Result) bool { return r.OutOfMemory != nil }) {
		return errOutOfMemory
	}
	return nil
}

// takeModels takes the models that are given as an argument.
func (f *sweepFlags) takeModels(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if f.set.Changed("model") {
		return badUsage("", "%s and --model both name models; give only one", args[0])
	}
	return f.set.Set("model", args[0])
}

// grid reads the axes off the flags.
func (f *sweepFlags) grid(ctx context.Context, e *env) (*study.Grid, error) {
	g := &study.Grid{Base: workload.Draft{}}
	taken := make(map[string]bool)
	for _, a := range sweepAxes {
		values, err := f.valuesOf(a.flag, a.key, a.values)
		if err != nil {
			return nil, err
		}
		taken[a.key] = true
		if a.key == "sequence" && !f.set.Changed(a.flag) && e.onlyImages(ctx, g.Axes[0].Values) {
			continue
		}
		g.Axes = append(g.Axes, study.Axis{Key: a.key, Values: values})
	}
	for _, key := range workload.KeyNames() {
		flag := f.set.Lookup(flagName(key))
		switch {
		case flag == nil || !flag.Changed || taken[key]:
		case key == "config":
			g.Base.Set(key, flag.Value.String())
		default:
			g.Axes = append(g.Axes, study.Axis{Key: key, Values: split(flag.Value.String())})
		}
	}
	if n := g.Size(); n > study.MaxCells {
		return nil, badUsage("give fewer values", "the grid has more than %d cells", study.MaxCells)
	}
	return g, nil
}

// onlyImages reports whether models take images and have no use for lengths.
func (e *env) onlyImages(ctx context.Context, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		w, err := e.finish(ctx, workload.Draft{"model": json.RawMessage(strconv.Quote(name))}, evidence.Auto)
		return err != nil || !w.TakesImages()
	})
}

// valuesOf returns the values of an axis. Models may be sizes or ids.
func (f *sweepFlags) valuesOf(flag, key, standard string) ([]string, error) {
	if models := f.set.Lookup("model"); key == "model" && models.Changed {
		if f.set.Changed(flag) {
			return nil, badUsage("", "--model and --%s both name models; give only one", flag)
		}
		return split(models.Value.String()), nil
	}
	values := split(standard)
	if given := f.set.Lookup(flag); given.Changed {
		values = split(given.Value.String())
	}
	for i, v := range values {
		var err error
		switch key {
		case "model":
			values[i], err = study.ModelOf(v)
		case "phase":
			var phase workload.Phase
			phase, err = study.PhaseOf(v)
			values[i] = string(phase)
		case "sequence", "batch":
			err = positiveFlag(flag, v)
		}
		if err != nil {
			return nil, badWord(err)
		}
	}
	return values, nil
}

// badWord makes an error about a flag of one that names it without dashes.
func badWord(err error) error {
	if strings.HasPrefix(err.Error(), "--") {
		return err
	}
	return badUsage("", "--%w", err)
}

// split returns the values of a list, each once.
func split(list string) []string {
	var out []string
	for _, v := range strings.Split(list, ",") {
		if v = strings.TrimSpace(v); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// cells makes a cell of each point; one that makes no sense says why in its
// place, unless none does.
func (f *sweepFlags) cells(c *cobra.Command, e *env, points []study.Point) ([]study.Cell, error) {
	cells := make([]study.Cell, len(points))
	good := 0
	for i, p := range points {
		var err error
		if cells[i], err = e.cell(c, p.Draft, f.engine, f.stepFlags); err != nil {
			cells[i] = study.Cell{Err: err}
		} else {
			good++
		}
	}
	if good == 0 {
		return nil, cells[0].Err
	}
	return cells, nil
}

// profile runs the cells.
func (f *sweepFlags) profile(c *cobra.Command, e *env, p study.Profiler, cells []study.Cell) ([]*study.Result, error) {
	progress := e.newPartProgress("cells")
	options := study.Options{Progress: progress.tell}
	again := "with --resume FILE it would continue from there"
	if f.resume != "" {
		journal, err := study.OpenJournal(f.resume, currentVersion().String())
		if err != nil {
			return nil, badInput("", "--resume: %w", err)
		}
		defer journal.Close()
		options.Journal = journal
		again = "the same command continues from there"
	}
	results, err := study.Run(c.Context(), p, cells, options)
	progress.end(err, again)
	return results, err
}

// sweepFormats are how a sweep can be written, by the names of formats.
var sweepFormats = map[string]func(report.Sweep, io.Writer, draw.Style) error{
	"text": func(s report.Sweep, w io.Writer, _ draw.Style) error {
		return report.WriteText(w, fileWidth, s.Write)
	},
	"markdown": func(s report.Sweep, w io.Writer, _ draw.Style) error { return s.WriteMarkdown(w) },
	"csv":      func(s report.Sweep, w io.Writer, _ draw.Style) error { return s.WriteCSV(w) },
	"json":     func(s report.Sweep, w io.Writer, _ draw.Style) error { return writeJSON(w, s.Sweep) },
	"svg":      report.Sweep.SVG,
	"png":      report.Sweep.PNG,
}

// fileWidth is how wide the text of a file may be.
const fileWidth = 120

// formatOf is the format that the name of a file means, "" if none.
func formatOf(path string) string {
	names := map[string]string{".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json", ".svg": "svg", ".png": "png"}
	return names[strings.ToLower(filepath.Ext(path))]
}

func (f *sweepFlags) checkOutputs() error {
	if sweepFormats[f.format] == nil {
		return badUsage("", "--format is %q; it must be text, markdown, csv, json, svg or png", f.format)
	}
	for _, o := range f.outputs {
		if formatOf(o) == "" {
			return badUsage("", "--output %s: the name must end in .txt, .md, .csv, .json, .svg or .png", o)
		}
	}
	return nil
}

func (f *sweepFlags) write(e *env, sweep *study.Sweep) error {
	s := report.Sweep{Sweep: sweep}
	for _, o := range f.outputs {
		if err := writeFile(o, func(w io.Writer) error { return sweepFormats[formatOf(o)](s, w, f.style) }); err != nil {
			return err
		}
	}
	if e.json || f.format == "text" {
		return e.printTable(sweep, s.Write)
	}
	return sweepFormats[f.format](s, e.stdout, f.style)
}
