package report

import (
	"fmt"
	"io"

	"memorymark/internal/figure"
	"memorymark/internal/recording"
)

// Diff is what changed, for people: a table of stacks, each with Frames of its
// frames; -1 for all.
type Diff struct {
	*recording.Diff
	Frames int
}

// Write writes the table.
func (d Diff) Write(w io.Writer, width int) error {
	for i, s := range []recording.DiffSide{d.Before, d.After} {
		fmt.Fprintf(w, "%-6s  %s, device %d\n        %s live in %s %s\n", []string{"before", "after"}[i], s.File, s.Device,
			heading(size(s.Bytes)), plural(s.Count, "allocation"), atText(s.At, s.Event))
	}
	if len(d.Changes) == 0 {
		fmt.Fprintln(w, "No stack holds more or less.")
		return nil
	}
	fmt.Fprintf(w, "change  %s%s\n\n", heading(signed(d.After.Bytes-d.Before.Bytes)), growth(d.Before.Bytes, d.After.Bytes))
	tab := &table{columns: []column{
		{title: "CHANGE", right: true},
		{title: "NOW", right: true},
		{title: "COUNT", right: true},
		{title: "CATEGORY"},
		{title: "MADE BY", stretch: true},
		{title: "CALLED FROM", stretch: true},
	}}
	for i := range d.Changes {
		c := &d.Changes[i]
		tab.rows = append(tab.rows, row{
			cells: []string{
				signed(c.Bytes), size(c.AfterBytes),
				figure.Count(c.BeforeCount) + "→" + figure.Count(c.AfterCount), categoryText(c.Category), madeBy(&c.Place), calledFrom(&c.Place),
			},
			below: below(&c.Place, d.Frames), color: categoryColor(c.Category),
		})
	}
	tab.write(w, width)
	if d.Left > 0 {
		fmt.Fprintf(w, "\n%s not shown\n", plural(d.Left, "smaller change"))
	}
	return nil
}

// growth writes how much a part has grown, " (+12.5 %)".
func growth(before, after int64) string {
	if before == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.1f %%)", 100*float64(after-before)/float64(before))
}
