package report

import (
	"fmt"
	"io"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

// Profile is the profile of a cell, for people.
type Profile struct {
	*study.Result
	Fit    *study.Fit `json:"would_fit,omitempty"` // if the cell does not
	Output string     `json:"output,omitempty"`    // the snapshot that was written
}

// Write writes the phases, the composition of the highest peak, the time and
// the largest allocations.
func (p Profile) Write(w io.Writer, width int) error {
	paragraph(w, width, study.SizeOf(p.Workload.Name()), describe(p.Workload))
	paragraph(w, width, "", restsOn(p.Result))
	if oom := p.OutOfMemory; oom != nil {
		fmt.Fprintln(w)
		paragraph(w, width, "Does not fit", outOfMemory(oom))
		writeFit(w, p.Workload, p.Fit)
	}
	if p.Peak != nil {
		p.writePhases(w, width)
		p.writePeak(w, width)
	}
	if p.StepSeconds != nil {
		fmt.Fprintf(w, "\n%s  a step takes %s%s\n", heading("Time"), seconds(*p.StepSeconds), estimated(p.Engine))
	}
	if len(p.Largest) > 0 {
		title := "Largest allocations"
		if p.OutOfMemory != nil {
			title += " until it failed"
		}
		fmt.Fprintf(w, "\n%s\n", heading(title))
		largestTable(p.Largest[:min(len(p.Largest), 8)], 3).write(w, width)
	}
	if p.Output != "" {
		fmt.Fprintf(w, "\n%s  %s, which PyTorch's viewer and memorymark snapshot read\n", heading("Snapshot"), p.Output)
	}
	return nil
}

// describe names what a cell runs.
func describe(x *workload.Workload) string {
	size := fmt.Sprintf("context %d", x.Sequence)
	if x.TakesImages() {
		size = fmt.Sprintf("%d² pixels", x.Image)
	}
	parts := []string{fmt.Sprintf("batch %d", x.Batch), size, study.ProfileType(x.Phase), string(x.Precision)}
	add := func(when bool, text string) {
		if when {
			parts = append(parts, text)
		}
	}
	if x.Phase == workload.Train {
		parts = append(parts, string(x.Optimizer))
		add(x.OptimizerImpl != workload.Foreach && x.Optimizer != workload.NoOptimizer, string(x.OptimizerImpl))
	}
	add(x.Checkpointing, "checkpointing")
	add(x.ChannelsLast, "channels_last")
	add(x.Accumulate > 1, fmt.Sprintf("%d accumulated", x.Accumulate))
	add(x.ExpandableSegments, "expandable segments")
	return strings.Join(parts, ", ")
}

// restsOn says what a result is based on, and by how much it may be off.
func restsOn(r *study.Result) string {
	if r.Provenance == nil {
		return ""
	}
	return strings.Join(nonEmpty(origin(r, true), accuracy(r)), "; ")
}

// origin says what a result is based on, with or without the card.
func origin(r *study.Result, card bool) string {
	p := r.Provenance
	s := capital(string(r.Engine)) + ", for PyTorch " + p.PyTorch
	if r.Engine.RunsSteps() {
		s = capital(string(r.Engine)) + " with PyTorch " + p.PyTorch
	}
	if card {
		s += ", on " + deviceText(p.GPU)
		if p.GPUMemory > 0 {
			s += fmt.Sprintf(" of %v", p.GPUMemory)
		}
	}
	if p.Time != nil {
		s += p.Time.UTC().Format(", 2006-01-02")
	}
	return s
}

// deviceText is a device with its article.
func deviceText(name string) string {
	if name == "CPU" {
		return "this CPU"
	}
	return gpu.WithArticle(name)
}

// accuracy says by how much a prediction may be off.
func accuracy(r *study.Result) string {
	a := r.Provenance.Accuracy
	switch {
	case r.Engine.RunsSteps():
		return ""
	case a == nil:
		return "how far off such predictions are is not known"
	case a.Allocated.Exact == a.Workloads:
		return fmt.Sprintf("all %d such peaks measured on an %s were predicted to the byte", a.Workloads, a.GPU)
	default:
		return fmt.Sprintf("of %d such peaks measured on an %s, the worst prediction was %.2g %% off", a.Workloads, a.GPU, 100*a.Allocated.Worst)
	}
}

func estimated(engine evidence.Engine) string {
	if engine == evidence.Predicted {
		return ", by a time model"
	}
	return ", at the median"
}

func outOfMemory(oom *study.OutOfMemory) string {
	s := "out of memory"
	if oom.Phase != "" {
		s += " in " + oom.Phase
	}
	switch {
	case oom.Requested > 0:
		s += fmt.Sprintf(": %v requested with %v reserved", oom.Requested, oom.Reserved)
	case oom.Reserved > 0:
		s += fmt.Sprintf(" with %v reserved", oom.Reserved)
	}
	if oom.Reserved > 0 && oom.Limit > 0 {
		s += fmt.Sprintf(" of %v", oom.Limit)
	}
	if oom.Needs > 0 {
		s += fmt.Sprintf("; it takes %v", oom.Needs)
	}
	return s
}

// writeFit names workloads that would fit instead.
func writeFit(w io.Writer, x *workload.Workload, f *study.Fit) {
	for _, s := range fitSentences(x, f) {
		fmt.Fprintln(w, s)
	}
}

func fitSentences(x *workload.Workload, f *study.Fit) []string {
	if f == nil {
		return nil
	}
	var fits, out []string
	if f.Batch > 0 {
		fits = append(fits, fmt.Sprintf("batch %d at context %d", f.Batch, x.Sequence))
	}
	if f.Context > 0 {
		fits = append(fits, fmt.Sprintf("context %d at batch %d", f.Context, x.Batch))
	}
	if len(fits) > 0 {
		out = append(out, fmt.Sprintf("The largest predicted to fit is %s.", strings.Join(fits, ", or ")))
	} else {
		out = append(out, "No batch and no context is predicted to fit: the card is too small for the model.")
	}
	if len(f.Changes) > 0 {
		with := make([]string, len(f.Changes))
		for i, c := range f.Changes {
			with[i] = c.Label
		}
		out = append(out, fmt.Sprintf("Unchanged, it is predicted to fit with %s.", strings.Join(with, ", or with ")))
	}
	return out
}

func (p Profile) writePhases(w io.Writer, width int) {
	fmt.Fprintln(w)
	if p.OutOfMemory != nil {
		fmt.Fprintln(w, "With enough memory:")
	}
	t := table{columns: []column{
		{title: "PHASE"}, {title: "PEAK REQUESTED", right: true}, {title: "ALLOCATED", right: true}, {title: "RESERVED", right: true}, {title: ""},
	}}
	for _, ph := range p.Phases {
		note := ""
		if ph.Name == p.Peak.Phase {
			note = "the peak"
		}
		t.rows = append(t.rows, row{cells: []string{ph.Name, known(int64(ph.Requested), size), known(int64(ph.Allocated), size), known(int64(ph.Reserved), size), note}})
	}
	t.write(w, width)
}

func (p Profile) writePeak(w io.Writer, width int) {
	ph := p.Phase(p.Peak.Phase)
	if ph == nil || len(ph.Made) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", heading("At the peak, in "+ph.Name))
	t := table{columns: []column{{title: "SIZE", right: true}, {title: "COUNT", right: true}, {title: "SHARE", right: true}, {title: "WHAT"}}}
	for _, m := range ph.Made {
		t.rows = append(t.rows, row{
			cells: []string{m.Bytes.String(), figure.Count(m.Count), percent(float64(m.Bytes) / float64(ph.Requested)), m.Category},
			color: categoryColor(strings.ReplaceAll(m.Category, " ", "_")),
		})
	}
	t.write(w, width)
}

// largestTable lists sets of equal allocations and the first locations that
// made them.
func largestTable(largest []study.Allocation, places int) *table {
	t := &table{columns: []column{
		{title: "SIZE", right: true}, {title: "COUNT", right: true}, {title: "TOTAL", right: true}, {title: "WHAT"}, {title: "MADE BY", stretch: true},
	}}
	for _, a := range largest {
		t.rows = append(t.rows, row{
			cells: []string{a.Bytes.String(), figure.Count(a.Count), (a.Bytes * bytesize.Bytes(a.Count)).String(), a.Category, originsText(a.Origins, places)},
			color: categoryColor(strings.ReplaceAll(a.Category, " ", "_")),
		})
	}
	return t
}

// originsText names the first locations that made an allocation.
func originsText(origins []study.Origin, most int) string {
	var parts []string
	for _, o := range origins[:min(len(origins), most)] {
		part := o.Place
		if len(origins) > 1 {
			part = fmt.Sprintf("%d × %s", o.Count, o.Place)
		}
		parts = append(parts, part)
	}
	if n := len(origins) - most; n > 0 {
		parts = append(parts, fmt.Sprintf("%d more", n))
	}
	return strings.Join(parts, ", ")
}

// seconds formats a time with three significant digits.
func seconds(s float64) string { return figure.About(int64(s * 1e6)) }
