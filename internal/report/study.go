package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"memorymark/internal/study"
	"memorymark/internal/workload"
)

// Study is what the folder of a study says.
type Study struct {
	plan   *study.Plan
	Models []ModelStudy
}

// ModelStudy is the part of a study that is about one model.
type ModelStudy struct {
	Size       string
	plan       *study.Plan
	Cells      []StudyCell // in the plan's order
	Activation *study.Activation
}

// StudyCell is a cell of a study, its result, and its picture.
type StudyCell struct {
	study.Finding
	Picture []byte // a PNG of its timeline, nil if there is none
}

// NewStudy puts the cells of a plan together by model. The activations are by
// model too.
func NewStudy(p *study.Plan, cells []StudyCell, activations []*study.Activation) *Study {
	s := &Study{plan: p}
	for i, model := range p.Models {
		m := ModelStudy{Size: study.SizeOf(model), plan: p, Activation: activations[i]}
		for _, c := range cells {
			if c.Cell.Workload.Model == model {
				m.Cells = append(m.Cells, c)
			}
		}
		s.Models = append(s.Models, m)
	}
	return s
}

// CellTitle is what stands above a picture of a cell.
func CellTitle(r *study.Result) string {
	return fmt.Sprintf("%s, %s (%s)", study.SizeOf(r.Workload.Name()), describe(r.Workload), r.Engine)
}

// at returns the cell of a context, a part of the step and a precision.
func (m *ModelStudy) at(context int64, phase workload.Phase, precision workload.Precision) *StudyCell {
	for i := range m.Cells {
		if w := m.Cells[i].Cell.Workload; w.Sequence == context && w.Phase == phase && w.Precision == precision {
			return &m.Cells[i]
		}
	}
	return nil
}

// compared are the cells of the longest context in both precisions, nil where
// one of them does not fit.
func (m *ModelStudy) compared(phase workload.Phase) *study.PrecisionComparison {
	full, mixed := m.at(m.plan.Longest(), phase, workload.FP32), m.at(m.plan.Longest(), phase, m.plan.Mixed)
	if full == nil || mixed == nil || !full.Fits() || !mixed.Fits() {
		return nil
	}
	return study.Compare(full.Result, mixed.Result)
}

// sweep is the part of the cells that is compared in one table.
func (m *ModelStudy) sweep(keep func(*workload.Workload) bool) Sweep {
	s := Sweep{&study.Sweep{}}
	values := map[string][]string{}
	for i := range m.Cells {
		c := &m.Cells[i]
		w := c.Cell.Workload
		if !keep(w) {
			continue
		}
		cell := study.SweepCell{Result: c.Result, Values: map[string]string{
			"model": w.Model, "batch": fmt.Sprint(w.Batch), "sequence": fmt.Sprint(w.Sequence), "phase": string(w.Phase), "precision": string(w.Precision),
		}}
		s.Cells = append(s.Cells, cell)
		for key, v := range cell.Values {
			if !slices.Contains(values[key], v) {
				values[key] = append(values[key], v)
			}
		}
	}
	for _, key := range []string{"model", "batch", "precision", "sequence", "phase"} {
		s.Axes = append(s.Axes, study.Axis{Key: key, Values: values[key]})
	}
	return s
}

func inFP32(w *workload.Workload) bool { return w.Precision == workload.FP32 }

func (m *ModelStudy) atLongest(w *workload.Workload) bool { return w.Sequence == m.plan.Longest() }

// each writes a section for each model.
func (s *Study) each(w io.Writer, write func(*ModelStudy)) error {
	for i := range s.Models {
		if i > 0 {
			fmt.Fprintf(w, "\n%s\n\n", strings.Repeat("─", 80))
		}
		write(&s.Models[i])
	}
	return nil
}

// WritePeaks writes the peaks of forward and training by context.
func (s *Study) WritePeaks(w io.Writer, width int) error {
	return s.each(w, func(m *ModelStudy) {
		fmt.Fprintf(w, "%s\n\n", heading("Peak memory of "+m.Size))
		_ = m.sweep(inFP32).Write(w, width)
		writeSentences(w, m.peakSentences())
		m.writeFits(w)
		if causes := m.causes(); len(causes.rows) > 0 {
			fmt.Fprintf(w, "\n%s\n", heading("What the peaks are made of, in requested bytes"))
			causes.write(w, max(width, 140))
		}
	})
}

// writeFits says what would fit where something does not.
func (m *ModelStudy) writeFits(w io.Writer) {
	for i := range m.Cells {
		if c := &m.Cells[i]; c.OutOfMemory != nil {
			fmt.Fprintf(w, "\n%s  %s\n", heading(describe(c.Cell.Workload)), outOfMemory(c.OutOfMemory))
			writeFit(w, c.Cell.Workload, c.Fit)
		}
	}
}

// causes says what the peak of each part of each step is made of.
func (m *ModelStudy) causes() *table {
	t := &table{columns: []column{{title: "CONTEXT", right: true}, {title: "TYPE"}, {title: "AT THE PEAK OF"}}}
	for _, name := range causeNames {
		t.columns = append(t.columns, column{title: strings.ToUpper(name), right: true})
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		if !inFP32(c.Cell.Workload) || !c.Fits() {
			continue
		}
		for j := range c.Phases {
			if len(c.Phases[j].Made) == 0 {
				continue // nothing was recorded
			}
			t.rows = append(t.rows, row{cells: append([]string{
				fmt.Sprint(c.Cell.Workload.Sequence), study.ProfileType(c.Cell.Workload.Phase), c.Phases[j].Name,
			}, causeTexts(&c.Phases[j])...)})
		}
	}
	return t
}

// causeNames are the purposes that tables have columns for.
var causeNames = []string{"parameter", "optimizer state", "gradient", "activation", "temporary"}

func causeTexts(p *study.PhaseUsage) []string {
	out := make([]string, len(causeNames))
	for i, name := range causeNames {
		for _, m := range p.Made {
			if m.Category == name {
				out[i] = m.Bytes.String()
			}
		}
	}
	return out
}

// WriteMixed writes what mixed precision does at the longest context.
func (s *Study) WriteMixed(w io.Writer, width int) error {
	return s.each(w, func(m *ModelStudy) {
		fmt.Fprintf(w, "%s\n\n", heading("Mixed precision: "+m.Size))
		_ = m.sweep(m.atLongest).Write(w, width)
		for _, phase := range []workload.Phase{workload.Forward, workload.Train} {
			c := m.compared(phase)
			if c == nil {
				fmt.Fprintf(w, "\n%s does not fit in one of the precisions, so there is nothing to compare.\n", capital(study.ProfileType(phase)))
				continue
			}
			for i := range c.Phases {
				if len(c.Phases[i].Full.Made) == 0 {
					continue
				}
				fmt.Fprintf(w, "\n%s\n", heading(fmt.Sprintf("%s, at the peak of %s", capital(study.ProfileType(phase)), c.Phases[i].Name)))
				m.comparison(&c.Phases[i]).write(w, width)
			}
		}
		writeSentences(w, m.mixedSentences())
	})
}

// comparison sets the parts of a peak in both precisions side by side.
func (m *ModelStudy) comparison(p *study.PhaseComparison) *table {
	t := &table{columns: []column{
		{title: ""}, {title: "WHAT"}, {title: "FP32", right: true}, {title: strings.ToUpper(string(m.plan.Mixed)), right: true}, {title: "CHANGE", right: true},
	}}
	add := func(effect string, r study.PurposeChange) {
		t.rows = append(t.rows, row{cells: []string{effect, r.What, r.Full.String(), r.Mixed.String(), changeText(r)}})
	}
	for _, effect := range []string{study.Stays, study.Shrinks, study.Grows} {
		rows, sum := p.By(effect)
		for i, r := range rows {
			if add("", r); i == 0 {
				t.rows[len(t.rows)-1].cells[0] = effect
			}
		}
		if len(rows) > 1 {
			sum.What = "all that " + effect
			add("", sum)
		}
	}
	add("in all", study.PurposeChange{What: "requested", Full: p.Full.Requested, Mixed: p.Mixed.Requested})
	add("", study.PurposeChange{What: "allocated", Full: p.Full.Allocated, Mixed: p.Mixed.Allocated})
	return t
}

func changeText(r study.PurposeChange) string {
	switch {
	case r.Full == r.Mixed:
		return "the same"
	case r.Full == 0:
		return "+" + r.Mixed.String()
	case math.Abs(float64(r.Mixed)/float64(r.Full)-1) < 0.0005:
		return "hardly any"
	default:
		return fmt.Sprintf("%+.1f %%", 100*(float64(r.Mixed)/float64(r.Full)-1))
	}
}

// WriteActivations writes the derivations.
func (s *Study) WriteActivations(w io.Writer, width int) error {
	return s.each(w, func(m *ModelStudy) { _ = Activation{m.Activation}.Write(w, width) })
}

// WriteLargest writes the largest allocations of each cell, with the stacks
// that made them.
func (s *Study) WriteLargest(w io.Writer, width int) error {
	return s.each(w, func(m *ModelStudy) {
		fmt.Fprintf(w, "%s\n", heading("Largest allocations of "+m.Size))
		fmt.Fprintln(w, "Count is how many of a size and purpose are live at the same time, at most.")
		for i := range m.Cells {
			c := &m.Cells[i]
			fmt.Fprintf(w, "\n%s\n", heading(describe(c.Cell.Workload)))
			if !c.Recorded() {
				fmt.Fprintln(w, "Nothing was recorded.")
				continue
			}
			largestTable(c.Largest, 3).write(w, max(width, 140))
		}
		m.writeStacks(w)
	})
}

// stackShown is a stack that a study shows, and what it made.
type stackShown struct {
	what   string
	frames []string
}

// stacks lists the stacks behind the largest allocations of the training step
// at the longest context, each once.
func (m *ModelStudy) stacks() []stackShown {
	c := m.at(m.plan.Longest(), workload.Train, workload.FP32)
	if c == nil {
		return nil
	}
	var out []stackShown
	for _, a := range c.Largest {
		for _, o := range a.Origins[:min(len(a.Origins), 2)] {
			if len(o.Frames) == 0 {
				continue
			}
			s := stackShown{what: fmt.Sprintf("%d × %v %s", o.Count, a.Bytes, a.Category)}
			for _, f := range o.Frames {
				s.frames = append(s.frames, f.String())
			}
			out = append(out, s)
		}
	}
	return out[:min(len(out), 12)]
}

func (m *ModelStudy) writeStacks(w io.Writer) {
	stacks := m.stacks()
	if len(stacks) > 0 {
		fmt.Fprintf(w, "\n%s\n", heading("The stacks of the largest, innermost frame first"))
	}
	for _, s := range stacks {
		fmt.Fprintf(w, "\n  %s\n    %s\n", s.what, strings.Join(s.frames, "\n    "))
	}
}

// writeSentences writes a paragraph.
func writeSentences(w io.Writer, sentences []string) {
	if len(sentences) > 0 {
		fmt.Fprintln(w)
	}
	for _, s := range sentences {
		fmt.Fprintln(w, wrap(s, 100))
	}
}

// wrap breaks a text into lines.
func wrap(text string, width int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
