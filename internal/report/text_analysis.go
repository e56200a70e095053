package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/figure"
	"memorymark/internal/predict"
	"memorymark/internal/steptime"
)

// Analysis writes an answer for people.
type Analysis struct{ *analysis.Answer }

// Write writes the headline first: what to use, and what is wasted.
func (a Analysis) Write(w io.Writer, width int) error {
	var headline string
	switch on := deviceText(a.GPUName); {
	case a.OptimalBatch > 0:
		headline = fmt.Sprintf("Batch %d trains on %s; %s", a.OptimalBatch, on, a.usage())
	case a.CurrentFits: // only multiples were asked for
		headline = fmt.Sprintf("Batch %d trains on %s, but no batch that is asked for", a.CurrentBatch, on)
	default:
		headline = "No batch trains on " + on
	}
	fmt.Fprintln(w, heading(headline))
	paragraph(w, width, "", a.evidence())
	fmt.Fprintln(w)
	a.writeResults(w, width)
	a.writeSpeed(w, width)
	a.writeRun(w, width)
	a.writeNotes(w, width)
	writeAssumed(w, width, a.Assumed)
	if g := a.Accumulation; g != nil {
		fmt.Fprintf(w, "%s  %d samples for each update: batch %d, accumulated %s\n", heading("Accumulation"),
			g.GlobalBatch, g.MicroBatch, plural(int(g.Steps), "time"))
	}
	if len(a.Changes) > 0 {
		a.writeChanges(w, width)
	}
	if len(a.Probes) > 0 {
		fmt.Fprintf(w, "\n%s\n", heading("What was run"))
		_ = Probes(a.Probes).Write(w, width)
	}
	a.writeForecast(w)
	a.writeAccuracy(w, width)
	return nil
}

// evidence says what the answer is based on.
func (a Analysis) evidence() string {
	p := a.Provenance
	with := "PyTorch " + p.PyTorch
	if p.Transformers != "" {
		with += " and transformers " + p.Transformers
	}
	verb := "for"
	if a.Engine.RunsSteps() {
		verb = "with"
	}
	return fmt.Sprintf("%s, %s, %s %s. PyTorch may use %v of the %s's %v.",
		a.ModelName, a.Engine, verb, with, bytesize.Bytes(a.Limit), a.holder(), bytesize.Bytes(a.GPUTotal))
}

// holder is the owner of the memory.
func (a Analysis) holder() string {
	if a.Device == "cuda" {
		return "card"
	}
	return "machine"
}

// writeForecast says by how much the prediction was off.
func (a Analysis) writeForecast(w io.Writer) {
	f := a.Predicted
	if f == nil {
		return
	}
	fmt.Fprintf(w, "\nPredicted were batch %d", f.OptimalBatch)
	if f.OptimalMemory > 0 {
		fmt.Fprintf(w, " and %v for batch %d (%+.2g %%)", bytesize.Bytes(f.OptimalMemory), a.OptimalBatch, f.ErrorPercent)
	}
	fmt.Fprintln(w, ".")
	if s := a.Seconds; s != nil {
		timing := ""
		if a.Engine == evidence.Measured {
			timing = fmt.Sprintf(", timing %.1f s", s.Throughput)
		}
		fmt.Fprintf(w, "Importing took %.1f s, finding the batch %.1f s%s.\n", s.Import, s.Search, timing)
	}
	for _, d := range a.Provenance.Differences {
		fmt.Fprintf(w, "Differs from what is predicted: %s.\n", d)
	}
}

// usage says how much of the card the current batch uses.
func (a Analysis) usage() string {
	if !a.CurrentFits {
		return fmt.Sprintf("your batch of %d does not", a.CurrentBatch)
	}
	return fmt.Sprintf("with batch %d you use %.0f %% of it", a.CurrentBatch, 100-a.CurrentWastePercent)
}

func (a Analysis) writeResults(w io.Writer, width int) {
	t := table{columns: []column{
		{title: "BATCH", right: true},
		{title: "ALLOCATED", right: true},
		{title: "RESERVED", right: true},
		{title: "SAMPLES/S", right: true},
		{title: "TOKENS/S", right: true},
		{title: strings.ToUpper(a.holder()), spare: 1},
		{title: "", wraps: true},
	}}
	samples := speeds(a.Results, func(r analysis.Result) float64 { return r.SamplesPerSecond })
	tokens := speeds(a.Results, func(r analysis.Result) float64 { return r.TokensPerSecond })
	for i, r := range a.Results {
		t.rows = append(t.rows, row{cells: []string{
			fmt.Sprint(r.Batch), known(r.Memory, size), known(r.Reserved, size), samples[i], tokens[i],
			bar(max(r.Reserved, r.Memory), a.GPUTotal), a.remark(r),
		}})
	}
	t.write(w, width)
	fmt.Fprintln(w)
}

// known formats a number, or nothing if it is unknown.
func known(n int64, text func(int64) string) string {
	if n == 0 {
		return ""
	}
	return text(n)
}

// speeds writes a column of speeds, all with as many decimals: enough for four
// digits of the fastest, so that they differ.
func speeds[T any](rows []T, of func(T) float64) []string {
	fastest := 0.0
	for _, r := range rows {
		fastest = max(fastest, of(r))
	}
	decimals := 0
	for x := fastest; x > 0 && x < 1000 && decimals < 6; x *= 10 {
		decimals++
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		switch x := of(r); {
		case x == 0: // unknown
		case decimals == 0:
			out[i] = figure.Count(int(math.Round(x)))
		default:
			out[i] = strconv.FormatFloat(x, 'f', decimals, 64)
		}
	}
	return out
}

func (a Analysis) remark(r analysis.Result) string {
	s := ""
	for _, m := range []struct {
		batch int64
		name  string
	}{{a.CurrentBatch, "current"}, {a.Recommended, "recommended"}, {a.OptimalBatch, "largest"}} {
		if m.batch == r.Batch {
			if s != "" {
				s += ", "
			}
			s += m.name
		}
	}
	switch {
	case !r.Success:
		s = strings.TrimSpace(s + " out of memory")
	case r.Verdict == predict.Tight:
		s = strings.TrimPrefix(s+", tight", ", ")
	}
	return s
}

// bar draws a share of twenty characters.
func bar(n, of int64) string {
	const width = 20
	full := int(min(n*width/max(of, 1), width))
	out := make([]rune, width)
	for i := range out {
		out[i] = '·'
		if i < full {
			out[i] = '█'
		}
	}
	return string(out)
}

// asFast compares speeds.
func asFast(factor float64) string {
	if s := fmt.Sprintf("%.2f", factor); s != "1.00" {
		return s + " × as fast as"
	}
	return "as fast as"
}

func (a Analysis) writeSpeed(w io.Writer, width int) {
	switch {
	case a.OptimalBatch == 0, a.OptimalBatch == a.CurrentBatch:
	case !a.CurrentFits:
		paragraph(w, width, "Speed", fmt.Sprintf("batch %d does not fit, so there is no speed to compare", a.CurrentBatch))
	case a.Speedup > 0:
		how := string(a.SpeedupBasis)
		switch a.SpeedupBasis {
		case evidence.Predicted:
			how += " by a time model"
		case evidence.Emulated:
			how = steptime.Stated.String()
		}
		paragraph(w, width, "Speed", fmt.Sprintf("batch %d is %s batch %d (%s)", a.OptimalBatch, asFast(a.Speedup), a.CurrentBatch, how))
	}
	// Savings of a batch that fits by chance are not reported.
	if a.Savings != nil && *a.Savings > 0 && a.Worthwhile() {
		from := ""
		if a.PriceSource != "" {
			from = " (" + a.PriceSource + ")"
		}
		paragraph(w, width, "Saves", fmt.Sprintf("$%.2f a year for %.0f hours at $%.2f%s", *a.Savings, a.HoursPerYear, *a.PricePerHour, from))
	}
}

// writeRun writes the time and cost of a whole run, if requested.
func (a Analysis) writeRun(w io.Writer, width int) {
	if a.Bill == nil || a.Bill.Run == nil {
		return
	}
	run := a.Bill.Run
	text := short(run.Samples) + " samples"
	if run.Tokens > 0 {
		text = short(run.Tokens) + " tokens"
	}
	text += fmt.Sprintf(" take %s with batch %d", daysText(run.Hours/24), a.Bill.Batch)
	if run.Dollars != nil {
		text += fmt.Sprintf(" and cost $%.2f at $%.2f per hour and GPU", *run.Dollars, *a.PricePerHour)
	}
	paragraph(w, width, "Run", text)
}

// writeNotes writes the notes, grouped by subject.
func (a Analysis) writeNotes(w io.Writer, width int) {
	for _, n := range a.Notes {
		if n.About == analysis.AboutAccuracy {
			continue // at the end
		}
		paragraph(w, width, strings.ToUpper(n.About[:1])+n.About[1:], n.Text)
	}
}

func (a Analysis) writeChanges(w io.Writer, width int) {
	fmt.Fprintf(w, "\n%s\n", heading("What a single change would do to the largest batch"))
	t := table{columns: []column{
		{title: "CHANGE"}, {title: "LARGEST", right: true}, {title: "", right: true}, {title: "SAMPLES/S", right: true}, {title: "TOKENS/S", right: true}, {title: "", wraps: true},
	}}
	samples := speeds(a.Changes, func(c analysis.Effect) float64 { return c.SamplesPerSecond })
	tokens := speeds(a.Changes, func(c analysis.Effect) float64 { return c.TokensPerSecond })
	for i, c := range a.Changes {
		if c.OptimalBatch == 0 && c.Error == "" {
			c.Error = "no batch fits"
		}
		cells := []string{c.Label, fmt.Sprint(c.OptimalBatch), fmt.Sprintf("%+.0f %%", 100*(float64(c.OptimalBatch)/float64(a.OptimalBatch)-1)), samples[i], tokens[i], ""}
		if c.Error != "" {
			cells = []string{c.Label, "", "", "", "", c.Error}
		}
		t.rows = append(t.rows, row{cells: cells})
	}
	t.write(w, width)
}

// writeAccuracy says by how much such answers were off where they could be
// verified.
func (a Analysis) writeAccuracy(w io.Writer, width int) {
	var sentences []string
	for _, n := range a.Notes {
		if n.About == analysis.AboutAccuracy {
			sentences = append(sentences, n.Text)
		}
	}
	writeFaint(w, width, sentences)
}

// writeFaint writes sentences that are not the answer, after an empty line.
func writeFaint(w io.Writer, width int, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	fmt.Fprintln(w)
	for _, line := range Fill(strings.Join(sentences, " "), min(width, maxText)) {
		fmt.Fprintln(w, faint(line))
	}
}
