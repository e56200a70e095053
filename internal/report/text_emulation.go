package report

import (
	"fmt"
	"io"

	"memorymark/internal/analysis"
	"memorymark/internal/figure"
	"memorymark/internal/predict"
)

// Emulation is what steps take on a card that is not there, for people.
type Emulation struct{ *analysis.Emulation }

// Write writes the steps and whether they fit.
func (e Emulation) Write(w io.Writer, width int) error {
	paragraph(w, width, fmt.Sprintf("%s, %s parameters", e.ModelName, figure.Count(int(e.Parameters))), fmt.Sprintf("batch %d", e.Batch))
	with := "PyTorch " + e.Versions.Torch
	if e.Versions.Transformers != "" {
		with += " and transformers " + e.Versions.Transformers
	}
	paragraph(w, width, "", fmt.Sprintf("Emulated, with %s, on %s of %v", with, deviceText(e.GPUName), e.GPUTotal))
	fmt.Fprintln(w)
	writeSteps(w, width, e.Steps)
	fmt.Fprintln(w)
	if f := e.Failure; f != nil {
		paragraph(w, width, "Does not fit", f.Summary()+": "+f.Message)
	} else {
		paragraph(w, width, "Fits", fmt.Sprintf("%v of %v is left", e.Limit-e.PeakReserved(), e.Limit))
	}
	return nil
}

func writeSteps(w io.Writer, width int, steps []predict.Step) {
	t := table{columns: []column{
		{title: "STEP", right: true},
		{title: "PEAK REQUESTED", right: true},
		{title: "ALLOCATED", right: true},
		{title: "RESERVED", right: true},
		{title: "ALLOCATED AFTER", right: true},
	}}
	for i, s := range steps {
		t.rows = append(t.rows, row{cells: []string{
			figure.Count(i + 1), s.PeakRequested.String(), s.PeakAllocated.String(), s.PeakReserved.String(), s.EndAllocated.String(),
		}})
	}
	t.write(w, width)
}
