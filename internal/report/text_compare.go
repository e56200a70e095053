package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"memorymark/internal/draw"
	"memorymark/internal/evidence"
	"memorymark/internal/figure"
	"memorymark/internal/recording"
)

// Compare is a comparison of two traces, for people: the first difference with
// Frames frames of its stack; -1 for all.
type Compare struct {
	*recording.Compare
	Frames int
}

// sides are the names of the two: the side that is not predicted is measured,
// unless it is known to be emulated.
func (c Compare) sides() [2]string {
	return [2]string{string(evidence.Predicted), string(cmp.Or(c.Engine, evidence.Measured))}
}

// Write writes the comparison.
func (c Compare) Write(w io.Writer, width int) error {
	for i, s := range []recording.CompareSide{c.Predicted, c.Measured} {
		fmt.Fprintf(w, "%-9s  %s, device %d\n           %s live at the peak (event %s), %s\n", c.sides()[i],
			s.File, s.Device, heading(size(s.PeakBytes)), figure.Count(s.PeakEvent), plural(s.Requests, "allocation and free", "allocations and frees"))
	}
	if c.PeakChange == 0 {
		fmt.Fprintf(w, "peaks      the same\n")
	} else {
		fmt.Fprintf(w, "peaks      %s%s\n", heading(signed(c.PeakChange)), growth(c.Measured.PeakBytes, c.Predicted.PeakBytes))
	}
	c.writeEqual(w)
	if len(c.Differences) == 0 {
		return nil
	}
	c.writeFirst(w, width)
	if c.Stretches > 1 {
		c.writeList(w, width)
	}
	return nil
}

// writeEqual says how much is the same.
func (c Compare) writeEqual(w io.Writer) {
	if c.Same {
		fmt.Fprintf(w, "equal      %s: every allocation and free, in order\n", heading("all "+figure.Count(c.Equal)))
	} else {
		fmt.Fprintf(w, "equal      %s before the first difference (%s), %s in all; %s\n", heading(figure.Count(c.Before)),
			percent(c.BeforeShare), figure.Count(c.Equal), plural(c.Stretches, "stretch differs", "stretches differ"))
	}
	for i, s := range []recording.CompareSide{c.Predicted, c.Measured} {
		if s.Beyond > 0 {
			fmt.Fprintf(w, "           %s continues for %s more\n", c.sides()[i], figure.Count(s.Beyond))
		}
	}
	if c.Reordered > 0 {
		fmt.Fprintf(w, "           %s in another order, which makes no difference\n",
			plural(c.Reordered, "run of frees is", "runs of frees are"))
	}
}

// writeFirst shows where the traces diverge.
func (c Compare) writeFirst(w io.Writer, width int) {
	d := &c.Differences[0]
	fmt.Fprintf(w, "\n%s  at event %s of predicted and %s of %s\n", heading("First difference"),
		figure.Count(d.Predicted.Event), figure.Count(d.Measured.Event), c.sides()[1])
	fmt.Fprintf(w, "  predicted  %s\n  %-9s  %s\n", requestsText(&d.Predicted), c.sides()[1], requestsText(&d.Measured))
	fmt.Fprintf(w, "  made by    %s\n", madeBy(&d.Place))
	if from := calledFrom(&d.Place); from != "" {
		fmt.Fprintf(w, "  called by  %s\n", from)
	}
	for _, f := range below(&d.Place, c.Frames) {
		fmt.Fprintf(w, "             %s\n", faint(cutLeft(f, width-13)))
	}
	fmt.Fprintln(w)
	t := table{columns: []column{
		{title: " "},
		{title: "EVENT", right: true},
		{title: "PREDICTED", right: true},
		{title: "EVENT", right: true},
		{title: strings.ToUpper(c.sides()[1]), right: true},
		{title: "MADE BY", stretch: true},
	}}
	for i := range d.Around {
		t.rows = append(t.rows, compareRow(&d.Around[i]))
	}
	t.write(w, width)
}

func compareRow(r *recording.CompareRow) row {
	out := row{cells: make([]string, 6)}
	if r.Differs {
		out.cells[0], out.color = ">", draw.FailureColor()
	}
	for side, q := range r.Sides {
		if q == nil {
			continue
		}
		out.cells[1+2*side], out.cells[2+2*side] = figure.Count(q.Event), requestText(q)
		if out.cells[5] == "" || len(q.Frames) > 0 {
			out.cells[5] = madeIn(&q.Place)
		}
	}
	return out
}

// requestText writes a request as "+3.00 MiB #12" or, for a free, "-3.00 MiB #12".
func requestText(q *recording.CompareRequest) string {
	bytes := q.Bytes
	if q.Action == "free" {
		bytes = -bytes
	}
	return fmt.Sprintf("%s #%d", signed(bytes), q.Allocation)
}

// requestsText describes the requests of a side in a stretch.
func requestsText(r *recording.CompareRequests) string {
	if r.Count == 0 {
		return "does nothing here"
	}
	first := &r.Requests[0]
	verb := "allocates"
	if first.Action == "free" {
		verb = "frees"
	}
	out := verb + " " + heading(size(first.Bytes))
	if first.Bytes >= 1<<10 {
		out += fmt.Sprintf(" (%s B)", figure.Count(int(first.Bytes)))
	}
	if r.Count > 1 {
		out += fmt.Sprintf(", the first of %s requests", figure.Count(r.Count))
	}
	return out
}

// writeList lists the stretches that differ.
func (c Compare) writeList(w io.Writer, width int) {
	fmt.Fprintf(w, "\n%s\n", heading("Where they differ"))
	t := table{columns: []column{
		{title: "EVENT", right: true},
		{title: "PREDICTED HAS", right: true},
		{title: "NET", right: true},
		{title: "EVENT", right: true},
		{title: strings.ToUpper(c.sides()[1]) + " HAS", right: true},
		{title: "NET", right: true},
		{title: "MADE BY", stretch: true},
	}}
	for i := range c.Differences {
		d := &c.Differences[i]
		var cells []string
		for _, r := range []*recording.CompareRequests{&d.Predicted, &d.Measured} {
			if r.Count == 0 {
				cells = append(cells, figure.Count(r.Event), "nothing", "")
				continue
			}
			cells = append(cells, figure.Count(r.Event), plural(r.Count, "request"), signed(r.Bytes))
		}
		t.rows = append(t.rows, row{cells: append(cells, madeIn(&d.Place))})
	}
	t.write(w, width)
	if c.Left > 0 {
		fmt.Fprintf(w, "\n%s not shown\n", plural(c.Left, "further stretch", "further stretches"))
	}
}
