package report

import (
	"fmt"
	"io"

	"memorymark/internal/figure"
	"memorymark/internal/recording"
)

// ReplayText is the answer of a replay, for people.
type ReplayText struct{ *recording.Replay }

// Write prints the answer.
func (a ReplayText) Write(w io.Writer, width int) error {
	settings := a.Settings
	if a.GraphPool > 0 {
		settings += ", " + size(a.GraphPool) + " for the pool of CUDA graphs"
	}
	fmt.Fprintf(w, "%s  %s events on device %d, settings %s\n", heading("Replay"), figure.Count(a.Events), a.Device, settings)
	if a.MatchesRecording {
		paragraph(w, width, "", "The simulation matches the recording: every address, every segment, every block at the end.")
	} else {
		writeDifference(w, width, a.FirstDifference)
	}
	fmt.Fprintln(w)
	a.writePeaks(w, width)
	a.writeVerdict(w, width)
	if a.Fragmentation != nil {
		writeFragmentation(w, width, a.Fragmentation)
	}
	return nil
}

func writeDifference(w io.Writer, width int, d *recording.Difference) {
	fmt.Fprintf(w, "  The simulation differs from the recording at event %s:\n", figure.Count(d.Event))
	fmt.Fprintf(w, "    recorded   %s\n    simulated  %s\n", d.Recorded, d.Simulated)
	for _, f := range d.Frames {
		fmt.Fprintln(w, faint("        "+cutLeft(f.String(), width-8)))
	}
}

func (a ReplayText) writePeaks(w io.Writer, width int) {
	t := table{columns: []column{{title: ""}, {title: "REPLAYED", right: true}}}
	rows := []struct {
		name string
		of   func(*recording.ReplayPeaks) int64
	}{
		{"peak requested", func(p *recording.ReplayPeaks) int64 { return p.PeakRequested }},
		{"peak allocated", func(p *recording.ReplayPeaks) int64 { return p.PeakAllocated }},
		{"peak reserved", func(p *recording.ReplayPeaks) int64 { return p.PeakReserved }},
		{"reserved at the end", func(p *recording.ReplayPeaks) int64 { return p.EndReserved }},
		{"segments added", func(p *recording.ReplayPeaks) int64 { return p.SegmentsRequested }},
	}
	if a.Recorded != nil {
		t.columns = append(t.columns, column{title: "RECORDED", right: true}, column{title: "CHANGE", right: true})
	}
	for _, r := range rows {
		cells := []string{r.name, size(r.of(&a.ReplayPeaks))}
		if a.Recorded != nil {
			cells = append(cells, size(r.of(a.Recorded)), signed(r.of(&a.ReplayPeaks)-r.of(a.Recorded)))
		}
		t.rows = append(t.rows, row{cells: cells})
	}
	t.write(w, width)
}

func signed(n int64) string {
	if n > 0 {
		return "+" + size(n)
	}
	return size(n)
}

func (a ReplayText) writeVerdict(w io.Writer, width int) {
	fmt.Fprintln(w)
	switch f := a.Failure; {
	case f != nil && f.Requested == 0:
		paragraph(w, width, "Does not fit", fmt.Sprintf("what was live when the recording began needs %s of segments, and the limit is %s.",
			size(f.Reserved), size(a.Limit)))
	case f != nil:
		paragraph(w, width, "Does not fit", fmt.Sprintf("event %s requests %s; %s is reserved, and %s of that is allocated.",
			figure.Count(f.Event), size(f.Requested), size(f.Reserved), size(f.Allocated)))
		fmt.Fprintln(w, "  "+cutLeft("requested by "+madeIn(&f.Place), width-2))
	case a.Fits && a.Limit > 0:
		paragraph(w, width, "Fits", fmt.Sprintf("into %s, with %s to spare and %d retries.%s", size(a.Limit), size(a.Limit-a.PeakReserved), a.Retries, a.butRanOut()))
	case a.Fits:
		paragraph(w, width, "Fits", "every request was met."+a.butRanOut())
	default:
		paragraph(w, width, "Did not fit", "the recording has an out-of-memory error; `memorymark snapshot info` explains it.")
	}
}

// butRanOut says what a recording does not show that ran out of memory.
func (a ReplayText) butRanOut() string {
	if a.RanOut == nil {
		return ""
	}
	return fmt.Sprintf(" The recording ran out of memory at event %s and does not show what the program would have requested next, so the whole run may need more.",
		figure.Count(*a.RanOut))
}

func writeFragmentation(w io.Writer, width int, f *recording.Fragmentation) {
	text := fmt.Sprintf("after event %s: %s free in %d pieces, the largest %s; %s (%.1f %% of reserved memory) is unusable",
		figure.Count(f.Event), size(f.Free), f.Pieces, size(f.Largest), size(f.Stuck), 100*f.Score)
	if len(f.Pins) > 0 {
		text += " in segments that are still partly in use:"
	}
	fmt.Fprintln(w)
	paragraph(w, width, "Fragmentation", text)
	if len(f.Pins) == 0 {
		return
	}
	t := table{columns: []column{
		{title: "SEGMENT", right: true},
		{title: "STUCK", right: true},
		{title: "IN USE", right: true},
		{title: "BLOCKS", right: true},
		{title: "SMALLEST BLOCK IN USE MADE BY", stretch: true},
	}}
	for i := range f.Pins {
		p := &f.Pins[i]
		t.rows = append(t.rows, row{cells: []string{
			size(p.Size), size(p.Stuck), size(p.InUse), fmt.Sprint(p.Blocks), madeIn(&p.Place),
		}})
	}
	t.write(w, width)
}
