package report

import (
	"fmt"
	"io"

	"memorymark/internal/figure"
	"memorymark/internal/trace"
)

// Diff is what is live in one snapshot and not in another.
type Diff struct {
	Before  DiffSide     `json:"before"`
	After   DiffSide     `json:"after"`
	Changes []DiffChange `json:"changes"`
	Left    int          `json:"changes_left_out,omitempty"`
}

// DiffSide is one of the two.
type DiffSide struct {
	File   string `json:"file"`
	Device int    `json:"device"`
	At     string `json:"at"`
	Event  int    `json:"event"`
	Bytes  int64  `json:"live_bytes"`
	Count  int    `json:"live_count"`
}

// DiffChange is what changed for one stack.
type DiffChange struct {
	Bytes       int64 `json:"change_bytes"`
	BeforeBytes int64 `json:"before_bytes"`
	AfterBytes  int64 `json:"after_bytes"`
	BeforeCount int   `json:"before_count"`
	AfterCount  int   `json:"after_count"`
	Place
}

// NewDiff prepares the n largest changes; 0 is all of them.
func NewDiff(before, after DiffSide, changes []trace.Change, n int) *Diff {
	d := &Diff{Before: before, After: after, Changes: []DiffChange{}}
	if n > 0 && n < len(changes) {
		d.Left = len(changes) - n
		changes = changes[:n]
	}
	for _, c := range changes {
		d.Changes = append(d.Changes, DiffChange{
			Bytes: c.Bytes(), BeforeBytes: c.Before.Bytes, AfterBytes: c.After.Bytes,
			BeforeCount: c.Before.Count, AfterCount: c.After.Count,
			Place: newPlace(c.Frames, c.For, c.Old),
		})
	}
	return d
}

// Write writes the changes as a table, each with so many frames of its
// stack; -1 is all of them.
func (d *Diff) Write(w io.Writer, width, frames int) error {
	for i, s := range []DiffSide{d.Before, d.After} {
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
				figure.Count(c.BeforeCount) + "→" + figure.Count(c.AfterCount), categoryText(c.Category), c.madeBy(), c.calledFrom(),
			},
			below: c.below(frames), color: categoryColor(c.Category),
		})
	}
	tab.write(w, width)
	if d.Left > 0 {
		fmt.Fprintf(w, "\n%s not shown\n", plural(d.Left, "smaller change"))
	}
	return nil
}

// growth writes by how much a part has grown, " (+12.5 %)".
func growth(before, after int64) string {
	if before == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.1f %%)", 100*float64(after-before)/float64(before))
}
