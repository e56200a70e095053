package report

import (
	"fmt"
	"io"
	"strconv"

	"memorymark/internal/figure"
	"memorymark/internal/predict"
)

// writeRange writes the memory of steps whose batches differ in length.
func writeRange(w io.Writer, width int, r *predict.Range) {
	paragraph(w, width, "Lengths", fmt.Sprintf("%s samples of %d to %d tokens, %.0f on average; batches are padded to their longest sample, so %s of the tokens are padding",
		figure.Count(int(r.Samples)), r.Shortest, r.Longest, r.Mean, percent(r.Padding)))
	fmt.Fprintln(w)
	t := table{columns: []column{
		{title: "STEP", right: true}, {title: "TOKENS", right: true}, {title: "ALLOCATED", right: true}, {title: "RESERVED", right: true}, {title: ""},
	}}
	add := func(s predict.RangeStep, what string) {
		t.rows = append(t.rows, row{cells: []string{
			strconv.Itoa(s.Step), strconv.FormatInt(s.Sequence, 10), s.PeakAllocated.String(), s.PeakReserved.String(), what,
		}})
	}
	add(r.Least, "the least")
	add(r.Typical, "typical")
	if r.Decides.Step == r.Most.Step {
		add(r.Most, "the longest batch, after all others: it decides")
	} else {
		add(r.Decides, "decides: no more is reserved after it")
		add(r.Most, "the longest batch, after all others")
	}
	t.write(w, width)
	fmt.Fprintln(w)
	paragraph(w, width, "Reserved", fmt.Sprintf("%v by batches of different lengths, which leave each other gaps; %v if all had %d tokens, %v with expandable segments",
		r.Decides.PeakReserved, r.Fixed, r.Longest, r.Expandable))
	paragraph(w, width, "Steps", fmt.Sprintf("%d were drawn from all samples (seed %d), then comes a batch with the longest one", r.Drawn, r.Seed))
}
