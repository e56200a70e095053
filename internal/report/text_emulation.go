package report

import (
	"fmt"
	"io"

	"memorymark/internal/allocator"
	"memorymark/internal/analysis"
	"memorymark/internal/emulate"
	"memorymark/internal/figure"
)

// EmulationText is the memory of steps on an emulated card, for people.
type EmulationText struct{ *analysis.Prediction }

// Write writes the steps and whether they fit.
func (e EmulationText) Write(w io.Writer, width int) error {
	title := e.ModelName
	if e.Parameters > 0 { // unknown for a model that was not built
		title += fmt.Sprintf(", %s parameters", figure.Count(int(e.Parameters)))
	}
	paragraph(w, width, title, fmt.Sprintf("batch %d", e.Workload.Batch))
	with := "PyTorch " + e.Versions.Torch
	if e.Versions.Transformers != "" {
		with += " and transformers " + e.Versions.Transformers
	}
	paragraph(w, width, "", fmt.Sprintf("Emulated, with %s, on %s of %v", with, deviceText(e.GPUName), e.GPUTotal))
	if e.Because != "" {
		paragraph(w, width, "Why", e.Because+", so that PyTorch ran it")
	}
	for _, note := range e.Notes {
		paragraph(w, width, "Note", note)
	}
	if len(e.Steps) > 0 {
		fmt.Fprintln(w)
		writeSteps(w, width, e.Steps)
	}
	if e.Breakdown.Total > 0 {
		writeBreakdown(w, width, e.PeakPhase, &e.Breakdown)
	}
	fmt.Fprintln(w)
	if f := e.Failure; f != nil {
		paragraph(w, width, "Does not fit", f.Summary()+": "+f.Message)
	} else {
		writeLeft(w, width, &e.Prediction.Prediction, e.Limit)
	}
	if e.StepSeconds > 0 {
		text := fmt.Sprintf("about %s per step, %s (%s)", seconds(e.StepSeconds), perSecond(analysis.Throughput{SamplesPerSecond: e.SamplesPerSecond, TokensPerSecond: e.TokensPerSecond}), e.TimeAccuracy)
		if r := e.StepRange; r != nil && r.Low < r.High {
			text += fmt.Sprintf("; on this card %s to %s (%s)", seconds(r.Low), seconds(r.High), e.StepCompared)
		}
		paragraph(w, width, "Speed", text)
	}
	writeAssumed(w, width, e.Assumed)
	writeFaint(w, width, e.AccuracyNotes)
	return nil
}

// writeAssumed names the first code locations where a value was made up.
func writeAssumed(w io.Writer, width int, assumed []emulate.Assumption) {
	for i, a := range assumed {
		if i == maxAssumptions {
			paragraph(w, width, "Made up", "and in "+plural(len(assumed)-i, "more place"))
			break
		}
		paragraph(w, width, "Made up", assumptionText(a))
	}
}

func assumptionText(a emulate.Assumption) string {
	return fmt.Sprintf("%s for %s at %s (%s)", a.Assumed, a.Function, a.Where, plural(int(a.Times), "time"))
}

func writeSteps(w io.Writer, width int, steps []allocator.Usage) {
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
