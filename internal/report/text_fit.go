package report

import (
	"fmt"
	"io"
	"slices"

	"memorymark/internal/change"
	"memorymark/internal/plan"
	"memorymark/internal/predict"
)

// FitText is what makes a workload fit a card, for people.
type FitText struct{ *plan.Fit }

// Write writes it.
func (f FitText) Write(w io.Writer, width int) error {
	f.writeAnswer(w, width)
	if len(f.Notes) > 0 {
		fmt.Fprintln(w)
	}
	writeNotes(w, width, f.Notes)
	return nil
}

func writeNotes(w io.Writer, width int, notes []string) {
	for _, note := range notes {
		paragraph(w, width, "Note", note)
	}
}

func (f FitText) writeAnswer(w io.Writer, width int) {
	needs := fmt.Sprintf("%s needs %v with batch %d, and PyTorch may hold %v of %s", f.Model, f.Needs, f.Batch, f.Limit, deviceText(f.GPUName))
	if f.Needs == 0 {
		needs = fmt.Sprintf("%s with batch %d needs more than the %v that PyTorch may hold of %s", f.Model, f.Batch, f.Limit, deviceText(f.GPUName))
	}
	switch {
	case f.Verdict == predict.Tight:
		needs += "; it leaves " + tightText(f.Margin)
		fallthrough
	case f.Fits:
		paragraph(w, width, verdictTitle(f.Verdict)+" as it is", needs)
		return
	case len(f.Options) == 0:
		paragraph(w, width, verdictTitle(f.Verdict), needs+"; no change helps")
		if f.Least != nil {
			paragraph(w, width, "Nearest", f.Least.Reason)
		}
		return
	}
	paragraph(w, width, verdictTitle(f.Verdict), needs)
	paragraph(w, width, "As it is", f.Reason)
	fmt.Fprintf(w, "\n%s\n", heading("Fits with "+f.countChanges()))
	f.writeOptions(w, width)
	if first := f.Options[0]; first.Verdict == predict.Tight {
		fmt.Fprintln(w)
		paragraph(w, width, "Tight", "each leaves "+tightText(f.Margin))
	}
	writeRecipe(w, "The first: "+change.Labels(f.Options[0].Changes), f.Options[0])
}

func (f FitText) writeOptions(w io.Writer, width int) {
	t := table{columns: []column{
		{title: "CHANGES", wraps: true},
		{title: "BATCH", right: true},
		{title: "MEMORY", right: true},
		{title: "LEFT", right: true},
		{title: "TOKENS/S", right: true},
		{title: "SAMPLES/S", right: true},
	}}
	samples := speeds(f.Options, func(o *plan.Option) float64 {
		if o.Speed.TokensPerSecond > 0 {
			return 0 // they are counted in tokens
		}
		return o.Speed.SamplesPerSecond
	})
	for i, o := range f.Options {
		cells := optionCells(o)
		left := leftText(o.Verdict, o.Peak.Limit-o.Peak.Reserved)
		t.rows = append(t.rows, row{cells: []string{change.Labels(o.Changes), cells[2], cells[3], left, cells[5], samples[i]}})
	}
	t.write(w, width)
}

// countChanges returns how many changes the options need: some combine others.
func (f FitText) countChanges() string {
	var counts []int
	for _, o := range f.Options {
		counts = append(counts, len(o.Changes))
	}
	least, most := slices.Min(counts), slices.Max(counts)
	if least == most {
		return plural(most, "change")
	}
	return fmt.Sprintf("%d to %s", least, plural(most, "change"))
}
