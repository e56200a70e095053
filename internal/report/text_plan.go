package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"memorymark/internal/draw"
	"memorymark/internal/evidence"
	"memorymark/internal/figure"
	"memorymark/internal/plan"
	"memorymark/internal/predict"
)

// PlanText is a plan, for people.
type PlanText struct {
	*plan.Plan
	All bool // options and misfits, not only the first ones
}

// Write writes the plan.
func (p PlanText) Write(w io.Writer, width int) error {
	paragraph(w, width, fmt.Sprintf("%s, %s parameters", p.Model, figure.Count(int(p.Parameters))),
		fmt.Sprintf("%d samples for each update, %s", p.GlobalBatch, p.amount()))
	how := fmt.Sprintf("Predicted, for PyTorch %s and transformers %s", predict.PyTorchVersion, predict.TransformersVersion)
	if p.Engine == evidence.Emulated {
		how = "Emulated"
	}
	paragraph(w, width, "", fmt.Sprintf("%s, out of %s", how, plural(p.Considered, "way to train", "ways to train")))
	if len(p.Options) == 0 {
		p.writeNothing(w, width)
		return nil
	}
	fmt.Fprintln(w)
	p.writePicks(w, width)
	fmt.Fprintf(w, "\n%s\n", heading("What fits, the fastest way for each"))
	p.writeOptions(w, width)
	p.writeMisfits(w, width)
	for _, pick := range p.picks() {
		writeRecipe(w, fmt.Sprintf("%s: %s, %s", pick.name, gpusText(pick.option.GPU, pick.option.GPUs), pick.option.Setup), pick.option)
	}
	if p.Engine == evidence.Emulated {
		fmt.Fprintln(w)
		writeNotes(w, width, p.Notes)
		return nil
	}
	writeFaint(w, width, p.Notes)
	return nil
}

// amount is the amount of training data.
func (p PlanText) amount() string {
	if p.Tokens > 0 {
		return short(p.Tokens) + " tokens"
	}
	if p.Engine == evidence.Emulated {
		return short(p.Samples) + " samples"
	}
	return short(p.Samples) + " images"
}

// short writes a large number with a word for its size.
func short(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}} {
		if n >= u.size {
			return figure.Short(math.Round(n/u.size*100)/100) + u.name
		}
	}
	return figure.Count(int(n))
}

// pick is an option that stands out.
type pick struct {
	name   string
	option *plan.Option
}

func (p PlanText) picks() []pick {
	var out []pick
	for _, x := range []pick{{"Cheapest", p.Cheapest}, {"Cheapest for all weights", p.Whole}, {"Balanced", p.Balanced}, {"Fastest", p.Fastest}, {"Simplest", p.Simplest}} {
		isOther := x.name == "Balanced" && (x.option == p.Cheapest || x.option == p.Whole || x.option == p.Fastest)
		if x.option != nil && !isOther {
			out = append(out, x)
		}
	}
	return out
}

func (p PlanText) writePicks(w io.Writer, width int) {
	for _, x := range p.picks() {
		o := x.option
		text := fmt.Sprintf("%s, %s, batch %d", gpusText(o.GPU, o.GPUs), o.Setup, o.Batch)
		if o.Passes > 1 {
			text += fmt.Sprintf(" accumulated %d times", o.Passes)
		}
		if o.Verdict == predict.Tight {
			text += fmt.Sprintf(", tight with %v left", o.Peak.Limit-o.Peak.Reserved)
		}
		text += ": " + daysText(o.Days)
		if o.Dollars != nil {
			text += fmt.Sprintf(", %s at %s an hour for each GPU (%s, %s, %s)", dollarsText(*o.Dollars), price(o.Price.USDPerHour), o.Price.Provider, o.Price.Market, o.Price.AsOf)
		}
		paragraph(w, width, x.name, text)
	}
}

func gpusText(id string, n int64) string {
	if n == 1 {
		return id
	}
	return fmt.Sprintf("%d × %s", n, id)
}

func daysText(days float64) string {
	if days < 2 {
		return figure.Short(figure.Significant(days*24, 3)) + " hours"
	}
	return figure.Short(figure.Significant(days, 3)) + " days"
}

func dollarsText(d float64) string {
	if d >= 10 {
		return "$" + figure.Count(int(math.Round(d)))
	}
	return fmt.Sprintf("$%.2f", d)
}

func price(d float64) string { return "$" + figure.Short(d) }

// fewOptions is the number of options in a short table.
const fewOptions = 20

func (p PlanText) writeOptions(w io.Writer, width int) {
	t := table{columns: []column{
		{title: "GPUS"},
		{title: "SETUP", wraps: true},
		{title: "BATCH", right: true},
		{title: "MEMORY", right: true},
		{title: "OF", right: true, spare: 3},
		{title: "TOKENS/S", right: true},
		{title: "SAMPLES/S", right: true},
		{title: "EFFICIENT", right: true, spare: 2},
		{title: "TIME", right: true},
		{title: "COST", right: true},
	}}
	shown := p.Options
	if !p.All && len(shown) > fewOptions {
		shown = shown[:fewOptions]
	}
	for _, o := range shown {
		t.rows = append(t.rows, row{cells: optionCells(o)})
	}
	t.write(w, width)
	if left := len(p.Options) - len(shown); left > 0 {
		fmt.Fprintf(w, "  %s not shown; --all shows them\n", plural(left, "more option is", "more options are"))
	}
}

func optionCells(o *plan.Option) []string {
	cells := []string{
		gpusText(o.GPU, o.GPUs), o.Setup, fmt.Sprintf("%d × %d", o.Batch, o.Passes), o.Peak.Reserved.String(), o.Peak.Limit.String(),
		"", "", "", daysText(o.Days), "",
	}
	if !o.Simulated {
		cells[3] = "≥ " + cells[3]
	}
	if o.Verdict == predict.Tight {
		cells[1] += " (tight)"
	}
	if o.Speed.TokensPerSecond > 0 {
		cells[5] = figure.Count(int(o.Speed.TokensPerSecond))
	} else if o.Speed.SamplesPerSecond > 0 {
		cells[6] = figure.Count(int(o.Speed.SamplesPerSecond))
	}
	if o.GPUs > 1 {
		cells[7] = fmt.Sprintf("%.0f %%", 100*o.Speed.Efficiency)
	}
	if o.Dollars != nil {
		cells[9] = dollarsText(*o.Dollars)
	}
	return cells
}

// writeMisfits says why the others do not fit.
func (p PlanText) writeMisfits(w io.Writer, width int) {
	if len(p.Misfits) == 0 {
		return
	}
	if !p.All {
		fmt.Fprintf(w, "\n%s\n", plural(len(p.Misfits), "choice of cards does not fit; --all says why", "choices of cards do not fit; --all says why each"))
		return
	}
	fmt.Fprintf(w, "\n%s\n", heading("What does not fit"))
	t := table{columns: []column{{title: "GPUS"}, {title: "TRAINS"}, {title: "WHY", wraps: true}}}
	for _, m := range p.Misfits {
		t.rows = append(t.rows, row{cells: []string{gpusText(m.GPU, m.GPUs), string(m.Trains), m.Reason}, color: draw.FailureColor()})
	}
	t.write(w, width)
}

// writeNothing says that nothing fits, and what comes closest.
func (p PlanText) writeNothing(w io.Writer, width int) {
	fmt.Fprintln(w)
	paragraph(w, width, "Nothing fits", "no way to train on these cards is within what they have and what the plan may cost and take")
	p.All = true
	p.writeMisfits(w, width)
}

// writeRecipe writes the program. It is not indented, so that it can be pasted.
func writeRecipe(w io.Writer, title string, o *plan.Option) {
	fmt.Fprintf(w, "\n%s\n", heading(title))
	writeCommand(w, o.Command)
	if o.Recipe != nil {
		writeCommand(w, o.Recipe.Launch)
		fmt.Fprintf(w, "\n%s\n%s", faint("# train.py"), o.Recipe.Program)
	}
}

// commandWidth is the maximum length of a line of a command.
const commandWidth = 80

// writeCommand writes a command, with line continuations if it is long.
func writeCommand(w io.Writer, command string) {
	line := "  $"
	for i, words := range strings.Split(command, " --") {
		if i > 0 {
			words = "--" + words
		}
		if len(line)+1+len(words)+len(` \`) > commandWidth {
			fmt.Fprintf(w, "%s \\\n", line)
			line = "     "
		}
		line += " " + words
	}
	fmt.Fprintln(w, line)
}
