package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"memorymark/internal/plan"
)

// Fit is what makes a workload fit a card, for people.
type Fit struct{ *plan.Fit }

// Write writes it.
func (f Fit) Write(w io.Writer, width int) error {
	switch {
	case f.Fits:
		paragraph(w, width, "Fits as it is", fmt.Sprintf("%s with batch %d takes %v on %s, and PyTorch may hold %v",
			f.Model, f.Batch, f.Needs, deviceText(f.GPUName), f.Limit))
		return nil
	case len(f.Options) == 0:
		paragraph(w, width, "Does not fit", fmt.Sprintf("%s needs %v with batch %d, and PyTorch may hold %v of %s; no change helps", f.Model, f.Needs, f.Batch, f.Limit, deviceText(f.GPUName)))
		if f.Least != nil {
			paragraph(w, width, "Nearest", f.Least.Reason)
		}
		return nil
	}
	paragraph(w, width, "Fits with "+f.countChanges(), fmt.Sprintf("%s needs %v with batch %d, and PyTorch may hold %v of %s", f.Model, f.Needs, f.Batch, f.Limit, deviceText(f.GPUName)))
	paragraph(w, width, "As it is", f.Reason)
	fmt.Fprintln(w)
	t := table{columns: []column{
		{title: "CHANGES", wraps: true},
		{title: "BATCH", right: true},
		{title: "MEMORY", right: true},
		{title: "TOKENS/S", right: true},
		{title: "SAMPLES/S", right: true},
	}}
	for _, o := range f.Options {
		cells := optionCells(o)
		t.rows = append(t.rows, row{cells: []string{strings.Join(o.Changes, " + "), cells[2], cells[3], cells[5], cells[6]}})
	}
	t.write(w, width)
	writeRecipe(w, "The fastest: "+strings.Join(f.Options[0].Changes, " + "), f.Options[0])
	return nil
}

// countChanges is how many changes the options take: some combine what others do
// at once.
func (f Fit) countChanges() string {
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
