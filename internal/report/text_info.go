package report

import (
	"fmt"
	"io"
	"strings"

	"memorymark/internal/figure"
	"memorymark/internal/recording"
	"memorymark/internal/trace"
)

// Info is the content of a snapshot file, for people.
type Info struct{ *recording.Info }

// Write writes the description.
func (in Info) Write(w io.Writer, width int) error {
	fmt.Fprintf(w, "%s: a snapshot of %s (pickle protocol %d", in.File, plural(len(in.Devices), "device"), in.Protocol)
	if in.Encoding != "" {
		fmt.Fprintf(w, ", %s", in.Encoding)
	}
	fmt.Fprintln(w, ")")
	if len(in.Devices) == 0 {
		paragraph(w, width, "", "Nothing was recorded: call torch.cuda.memory._record_memory_history() before the code in question.")
	}
	if len(in.Unknown) > 0 {
		fmt.Fprintf(w, "Not read, because MemoryMark does not know it: %s\n", strings.Join(in.Unknown, ", "))
	}
	for i := range in.Devices {
		writeDevice(w, width, &in.Devices[i])
	}
	return nil
}

func writeDevice(w io.Writer, width int, d *recording.DeviceInfo) {
	fmt.Fprintf(w, "\n%s\n  %s\n", heading(fmt.Sprintf("Device %d", d.Device)), eventsText(d))
	if d.Lost > 0 {
		fmt.Fprintf(w, "  %s contradict the rest, as when kinds of events were left out of the\n"+
			"  recording; amounts are a good guess.\n", plural(d.Lost, "event"))
	}
	title, when := "Peak", "before the first event"
	switch {
	case d.Events == 0:
		paragraph(w, width, "", "The snapshot has no history, only what was live when it was taken: nothing was recorded "+
			"(torch.cuda.memory._record_memory_history), or it was taken without traces.")
		title, when = "Live", "when the snapshot was taken"
	case d.Peak.Event >= 0:
		when = "at event " + figure.Count(d.Peak.Event)
	}
	fmt.Fprintf(w, "\n%s\n", heading(title))
	writePeak(w, &d.Peak, when)
	if len(d.AtPeak) > 0 {
		fmt.Fprintln(w)
		Top{Top: &recording.Top{By: recording.ByCategory, Groups: d.AtPeak}}.table().write(w, width)
	}
	if n := d.Actions[trace.OutOfMemory.String()]; n > len(d.Failures) {
		fmt.Fprintf(w, "\nOut of memory %s times; the last %d:\n", figure.Count(n), len(d.Failures))
	}
	for i := range d.Failures {
		writeFailure(w, width, &d.Failures[i])
	}
	writeSegments(w, width, d.Segments)
	writeSettings(w, width, &d.Settings)
}

func eventsText(d *recording.DeviceInfo) string {
	s := plural(d.Events, "event")
	if d.Micros > 0 {
		s += " in " + figure.About(d.Micros)
	}
	if d.Events > 0 {
		s += fmt.Sprintf(": %s, %s", plural(d.Actions["alloc"], "allocation"), plural(d.Actions["free_requested"], "free"))
	}
	if d.Steps > 0 {
		s += ", " + plural(d.Steps, "optimizer step")
	}
	return s
}

func writePeak(w io.Writer, p *recording.PeakInfo, when string) {
	fmt.Fprintf(w, "  requested  %10s  by the program, %s\n", size(p.Requested), when)
	if p.Allocated != nil {
		fmt.Fprintf(w, "  allocated  %10s  with the allocator's rounding\n", size(*p.Allocated))
	}
	if p.Reserved != nil {
		fmt.Fprintf(w, "  reserved   %10s  taken from the driver\n", size(*p.Reserved))
	}
}

func writeFailure(w io.Writer, width int, f *recording.FailureInfo) {
	text := size(f.Asked) + " requested by " + madeByFrom(&f.By)
	if f.DeviceFree != nil {
		text += fmt.Sprintf("; %s was free on the device", size(*f.DeviceFree))
	}
	fmt.Fprintln(w)
	paragraph(w, width, "Out of memory at event "+figure.Count(f.Event), fmt.Sprintf("%s; %s was live", text, size(f.LiveBytes)))
	fmt.Fprintln(w)
	Top{Top: &recording.Top{By: recording.ByLine, Groups: f.Top}}.table().write(w, width)
	if f.Why != nil {
		writeExplanation(w, width, f.Why)
	}
}

func writeSegments(w io.Writer, width int, s *recording.SegmentsInfo) {
	if s == nil {
		return
	}
	fmt.Fprintln(w)
	paragraph(w, width, "At the end", fmt.Sprintf("%s of %s in all: %s used, %s free, the largest free block %s",
		plural(s.Count, "segment"), size(s.Bytes), size(s.UsedBytes), size(s.FreeBytes), size(s.LargestFree)))
}

func writeSettings(w io.Writer, width int, s *recording.SettingsInfo) {
	var set []string
	if s.ExpandableSegments {
		set = append(set, "expandable segments")
	}
	if s.MaxSplitSize > 0 {
		set = append(set, "max split size "+size(s.MaxSplitSize))
	}
	if s.GCThreshold > 0 {
		set = append(set, fmt.Sprintf("garbage collection threshold %g", s.GCThreshold))
	}
	if s.Raw != "" {
		set = append(set, fmt.Sprintf("PYTORCH_CUDA_ALLOC_CONF=%q", s.Raw))
	}
	if len(set) == 0 {
		set = append(set, "PyTorch's defaults")
	}
	paragraph(w, width, "Settings", strings.Join(set, ", "))
}
