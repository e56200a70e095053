package report

import (
	"fmt"
	"io"

	"memorymark/internal/analysis"
)

// Probes are the batches that were run, in order.
type Probes []analysis.Probe

// Write writes them as a table.
func (p Probes) Write(w io.Writer, width int) error {
	t := table{columns: []column{
		{title: "BATCH", right: true},
		{title: "FOR"},
		{title: "STEPS", right: true},
		{title: "ALLOCATED", right: true},
		{title: "RESERVED", right: true},
		{title: "S/STEP", right: true},
		{title: "RETRIES", right: true, spare: 1},
		{title: "", wraps: true},
	}}
	for _, probe := range p {
		peaks := probe.Peaks()
		outcome := "trains"
		if probe.Failure != nil {
			outcome = probe.Failure.Summary()
		}
		t.rows = append(t.rows, row{cells: []string{
			fmt.Sprint(probe.Batch), probe.Purpose, fmt.Sprint(len(probe.Steps)),
			known(peaks.Allocated, size), known(peaks.Reserved, size), stepSeconds(probe), fmt.Sprint(probe.Retries), outcome,
		}})
	}
	t.write(w, width)
	return nil
}

// stepSeconds is the timed step, or the last one.
func stepSeconds(p analysis.Probe) string {
	switch {
	case p.SecondsPerStep > 0:
		return fmt.Sprintf("%.3f", p.SecondsPerStep)
	case len(p.Steps) > 0 && p.Steps[len(p.Steps)-1].Seconds > 0:
		return fmt.Sprintf("%.3f", p.Steps[len(p.Steps)-1].Seconds)
	default: // on an emulated card times mean nothing
		return ""
	}
}
