package study_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/draw"
	"memorymark/internal/recording"
	"memorymark/internal/report"
	"memorymark/internal/study"
	"memorymark/internal/testmachine"
	"memorymark/internal/timeline"
	"memorymark/internal/workload"
)

var update = flag.Bool("update", false, "rewrite docs/study.md and its pictures")

const (
	docs          = "../../docs/"
	contextsImage = "images/study-contexts.png"
	timelineImage = "images/study-2.7B-training.png"
)

// The page of what was measured is up to date.
func TestStudyPage(t *testing.T) {
	p := page{t: t, all: measurements(t)}
	got := p.document()
	if *update {
		p.write("study.md", got)
		p.write(contextsImage, p.contexts())
		p.write(timelineImage, p.timeline())
		return
	}
	want := testmachine.ReadFile(t, docs+"study.md")
	if !bytes.Equal(got, want) {
		t.Error("docs/study.md is out of date: run make golden and read the diff")
	}
}

// page writes docs/study.md.
type page struct {
	t   *testing.T
	all []measurement
}

func (p *page) write(name string, data []byte) {
	if err := os.WriteFile(docs+name, data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

const pageOpening = `# The memory study, measured

<!-- Written by make golden from testdata/truth/study; a test fails when it is out of date. -->

This study runs a plain language model in five sizes on a real GPU, as forward passes and as whole training steps with AdamW, and
compares the results with predictions made without a GPU. The model has pre-norm blocks with RMSNorm, rotary positions, explicit
attention scores and SwiGLU, and a vocabulary of 10,000; its code is in
[` + "`lm.py`](../internal/measure/prober/memorymark_prober/lm.py)" + `.

    memorymark study report --engine measured --warmup-steps 2
    memorymark study sweep --engine measured --warmup-steps 2 --context-length 128,256,512 --precision fp32

It ran on 2026-11-15 on one NVIDIA H200 (139.80 GiB) with driver 580, PyTorch 2.11.0+cu130, CUDA 13.0 and Python 3.12.3. Each cell ran in
a fresh process: two warm-up steps, one recorded step, then the timed steps. Peaks are the allocator's own statistics, reset at the
start of each part of the step. Training xl at context 512 in fp32 is missing, because the time on the machine ran out. The results
are in [` + "`testdata/truth/study`](../testdata/truth/study)" + `, with the recordings of 2.7B. Every test run computes the tables and lists below
from them again.
`

func (p *page) document() []byte {
	var b bytes.Buffer
	b.WriteString(pageOpening)
	p.writeAgreement(&b)
	fmt.Fprintf(&b, "\n## Peaks by size and context\n\n")
	if err := p.sweep().WriteMarkdown(&b); err != nil {
		p.t.Fatal(err)
	}
	fmt.Fprintf(&b, "\n![peak memory against context length, one panel for each size](%s)\n", contextsImage)
	s := p.study()
	fmt.Fprintf(&b, "\n## 2.7B in detail\n\nThis is the output of `memorymark study report`:\n\n")
	p.writeText(&b, s.WritePeaks)
	fmt.Fprintf(&b, "\nThe recorded training step at context 512, by category of memory:\n\n![timeline of the step](%s)\n", timelineImage)
	fmt.Fprintf(&b, "\n## Mixed precision\n\n")
	p.writeText(&b, s.WriteMixed)
	p.writeLargest(&b)
	return b.Bytes()
}

// styles are what makes text bold on a terminal.
var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (p *page) writeText(b *bytes.Buffer, write func(w io.Writer, width int) error) {
	var text bytes.Buffer
	if err := write(&text, 120); err != nil {
		p.t.Fatal(err)
	}
	fmt.Fprintf(b, "```text\n%s```\n", styles.ReplaceAllString(text.String(), ""))
}

// writeAgreement says how predictions compare.
func (p *page) writeAgreement(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## How predictions compare\n\n%d cells were measured. Errors are relative to the measured value: + means that the prediction is too high.\n\n", len(p.all))
	fmt.Fprintf(b, "| what | compared | the same | median | from | to |\n|---|--:|--:|--:|--:|--:|\n")
	for _, kind := range []struct {
		what string
		of   func(study.Peak) bytesize.Bytes
	}{
		{"peak requested memory of each part of the step", func(p study.Peak) bytesize.Bytes { return p.Requested }},
		{"peak allocated memory of each part of the step", func(p study.Peak) bytesize.Bytes { return p.Allocated }},
		{"peak reserved memory of each part of the step", func(p study.Peak) bytesize.Bytes { return p.Reserved }},
	} {
		var errors []float64
		for _, m := range p.all {
			for i, ph := range m.measured.Phases {
				errors = append(errors, float64(kind.of(m.predicted.Phases[i].Peak))/float64(kind.of(ph.Peak))-1)
			}
		}
		writeErrors(b, kind.what, errors)
	}
	p.writeRecordedAgreement(b)
	var errors []float64
	worst := &p.all[0]
	for i := range p.all {
		m := &p.all[i]
		errors = append(errors, m.timeError())
		if math.Abs(m.timeError()) > math.Abs(worst.timeError()) {
			worst = m
		}
	}
	writeErrors(b, "time of a step", errors)
	fmt.Fprintf(b, pageAgreement, worst.cell.Name, 1e3**worst.measured.StepSeconds, 1e3**worst.predicted.StepSeconds)
}

const pageAgreement = `
A list of the largest allocations contains their sizes, their purposes and how many are live at once. Two lists are the same if all
of that agrees, in the same order. Step times do not come from a simulation, but from a model of the card that was fitted to other models. The
worst is %s: it took %.1f ms, and %.1f ms were predicted. [accuracy.md](accuracy.md) has the figures for other models.
`

func (m *measurement) timeError() float64 {
	return *m.predicted.StepSeconds / *m.measured.StepSeconds - 1
}

// writeRecordedAgreement counts what recordings tell beyond the statistics.
func (p *page) writeRecordedAgreement(b *bytes.Buffer) {
	parts, sameParts, sameLists := 0, 0, 0
	for _, m := range p.all {
		list := func(r *study.Result) (out []string) {
			for _, a := range r.Largest[:len(m.measured.Largest)] {
				out = append(out, fmt.Sprint(a.Bytes, a.Category, a.Count))
			}
			return out
		}
		if slices.Equal(list(m.measured), list(m.predicted)) {
			sameLists++
		}
		for i, ph := range m.measured.Phases {
			if m.trace == nil {
				continue
			}
			if parts++; slices.Equal(ph.Made, m.predicted.Phases[i].Made) {
				sameParts++
			}
		}
	}
	fmt.Fprintf(b, "| breakdown of the peaks of 2.7B, by purpose | %d | %d | | | |\n", parts, sameParts)
	fmt.Fprintf(b, "| list of the largest allocations | %d | %d | | | |\n", len(p.all), sameLists)
}

func writeErrors(b *bytes.Buffer, what string, errors []float64) {
	exact := 0
	for _, e := range errors {
		if e == 0 {
			exact++
		}
	}
	slices.Sort(errors)
	sizes := make([]float64, len(errors))
	for i, e := range errors {
		sizes[i] = math.Abs(e)
	}
	slices.Sort(sizes)
	fmt.Fprintf(b, "| %s | %d | %d | %s | %s | %s |\n", what, len(errors), exact,
		strings.TrimPrefix(percent(sizes[len(sizes)/2]), "+"), percent(errors[0]), percent(errors[len(errors)-1]))
}

func percent(share float64) string {
	if share == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.2g %%", 100*share)
}

// writeLargest sets the list of one cell next to what is predicted.
func (p *page) writeLargest(b *bytes.Buffer) {
	m := p.at(study.Sizes[len(study.Sizes)-1], 512, workload.Train, workload.FP32)
	fmt.Fprintf(b, "\n## Largest allocations\n\nThe cell is %s.\nCount is the largest number of allocations of one size and purpose that are live at the same time. The prediction has the same list. It\nnames modules where the recording names lines:\n\n", report.CellTitle(m.measured))
	fmt.Fprintf(b, "| size | count | what | made by, recorded | made by, predicted |\n|--:|--:|---|---|---|\n")
	for i, a := range m.measured.Largest {
		fmt.Fprintf(b, "| %v | %d | %s | %s | %s |\n", a.Bytes, a.Count, a.Category, origins(a), origins(m.predicted.Largest[i]))
	}
}

func origins(a study.Allocation) string {
	var out []string
	for _, o := range a.Origins {
		out = append(out, fmt.Sprintf("%d × `%s`", o.Count, o.Place))
	}
	return strings.Join(out, ", ")
}

// at returns the measurement of a cell.
func (p *page) at(size string, context int64, phase workload.Phase, precision workload.Precision) *measurement {
	for i := range p.all {
		w := p.all[i].cell.Workload
		if study.SizeOf(w.Name()) == size && w.Sequence == context && w.Phase == phase && w.Precision == precision {
			return &p.all[i]
		}
	}
	p.t.Fatalf("%s at context %d was not measured", size, context)
	return nil
}

// sweep is every cell in fp32.
func (p *page) sweep() report.Sweep {
	s := &study.Sweep{Axes: []study.Axis{
		{Key: "model"},
		{Key: "batch", Values: []string{"4"}},
		{Key: "precision", Values: []string{string(workload.FP32)}},
		{Key: "sequence", Values: []string{"128", "256", "512"}},
		{Key: "phase", Values: []string{string(workload.Forward), string(workload.Train)}},
	}}
	for _, size := range study.Sizes {
		model, err := study.ModelOf(size)
		if err != nil {
			p.t.Fatal(err)
		}
		s.Axes[0].Values = append(s.Axes[0].Values, model)
	}
	for _, m := range p.all {
		if w := m.cell.Workload; w.Precision == workload.FP32 {
			s.Cells = append(s.Cells, study.SweepCell{Result: m.measured, Values: map[string]string{
				"model": w.Model, "batch": fmt.Sprint(w.Batch), "precision": string(w.Precision), "sequence": fmt.Sprint(w.Sequence), "phase": string(w.Phase),
			}})
		}
	}
	return report.Sweep{Sweep: s}
}

// study is what was measured of 2.7B, as memorymark study report puts it together.
func (p *page) study() *report.Study {
	plan := &study.Plan{Models: []string{"lm-2.7b"}, Contexts: []int64{128, 256, 512}, Batch: 4, Mixed: workload.AMPBF16}
	var cells []report.StudyCell
	for _, m := range p.all {
		if m.trace != nil {
			cells = append(cells, report.StudyCell{Finding: study.Finding{Cell: m.cell, Result: m.measured}})
		}
	}
	return report.NewStudy(plan, cells, make([]*study.Activation, 1))
}

// contexts is a picture of the peaks.
func (p *page) contexts() []byte {
	var b bytes.Buffer
	if err := p.sweep().PNG(&b, draw.Style{Light: true}); err != nil {
		p.t.Fatal(err)
	}
	return b.Bytes()
}

// timeline is a picture of a recorded step.
func (p *page) timeline() []byte {
	m := p.at("2.7B", 512, workload.Train, workload.FP32)
	t := *m.trace
	t.Marks = study.PhaseMarks(&t)
	tl, err := timeline.Build(&t, study.Classified(m.cell.Workload, m.trace), recording.New(m.trace).Levels(), timeline.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := draw.TimelinePNG(&b, tl, draw.Style{Light: true, Title: report.CellTitle(m.measured)}); err != nil {
		p.t.Fatal(err)
	}
	return b.Bytes()
}
