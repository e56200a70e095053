package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/evidence"
	"memorymark/internal/study"
	"memorymark/internal/testmachine"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// predictedStudy is a study of a small model, on a card of choice.
func predictedStudy(t *testing.T, cardID string, contexts ...int64) *Study {
	t.Helper()
	card := workloadtest.Card(t, cardID)
	p := &study.Plan{Models: []string{"lm-small"}, Contexts: contexts, Batch: 2, Mixed: workload.AMPBF16, Card: card, Warmup: 1, Steps: 1}
	cells, err := p.Cells()
	if err != nil {
		t.Fatal(err)
	}
	results, err := study.Run(t.Context(), study.Predictor{}, cells, study.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []StudyCell
	for i, c := range cells {
		all = append(all, StudyCell{study.Finding{Cell: c, Result: results[i]}, []byte("png")})
	}
	a, err := study.NewActivation(cells[0].Workload, card, nil)
	if err != nil {
		t.Fatal(err)
	}
	return NewStudy(p, all, []*study.Activation{a})
}

// The page is one file: nothing is loaded from elsewhere, and every table and
// picture is in it.
func TestStudyPage(t *testing.T) {
	s := predictedStudy(t, "h200", 16, 64)
	var b bytes.Buffer
	if err := s.WriteHTML(&b, []string{"index.html", "<b>.pickle"}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"Where the memory of a step goes: small", "Predicted, for PyTorch 2.11", "data:image/png;base64,", "<svg",
		"At context 64 a training step peaks at", "kept for backward when forward ends", "stays", "shrinks", "is added",
		"&lt;b&gt;.pickle", "TransformerLM blocks.*",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page, "<figure>"); n != 8 { // 6 cells and 2 charts
		t.Errorf("%d figures", n)
	}
	for _, link := range regexp.MustCompile(`(src|href|url\()="?([^" )]*)`).FindAllStringSubmatch(page, -1) {
		if target := link[2]; !strings.HasPrefix(target, "#") && !strings.HasPrefix(target, "data:") {
			t.Errorf("the page refers to %q", target)
		}
	}
	if strings.Contains(page, "<script") {
		t.Error("the page has a script")
	}
}

// Charts in the page are whole.
func TestStudyChartsAreXML(t *testing.T) {
	s := predictedStudy(t, "h200", 16, 64)
	chart, err := chartHTML(s.Models[0].sweep(inFP32), "a < b")
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(chart)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Where the card is too small, the study says so and has no more to compare.
func TestStudyThatDoesNotFit(t *testing.T) {
	s := predictedStudy(t, "t4", 64, 4096)
	m := &s.Models[0]
	for i := range m.Cells {
		if c := &m.Cells[i]; c.OutOfMemory != nil {
			c.Fit = &study.Fit{Batch: 1, Changes: []change.Change{{Label: "checkpointing"}}}
		}
	}
	var texts, page bytes.Buffer
	for _, write := range []func(io.Writer, int) error{s.WritePeaks, s.WriteMixed, s.WriteActivations, s.WriteLargest} {
		if err := write(&texts, 100); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.WriteHTML(&page, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"does not fit", "The largest predicted to fit is batch 1 at context 4096.", "is predicted to fit with checkpointing", "nothing to compare"} {
		if !strings.Contains(texts.String(), want) {
			t.Errorf("the texts lack %q", want)
		}
	}
	if !strings.Contains(page.String(), "It does not fit: out of memory in") {
		t.Error("the page does not say what does not fit")
	}
	if slices.ContainsFunc(m.peakSentences(), func(s string) bool { return strings.Contains(s, "At context 4096") }) {
		t.Errorf("there are sentences about what does not fit: %q", m.peakSentences())
	}
}

// Measured without a recording, as on a CPU, a study says what it knows.
func TestStudyWithoutRecordings(t *testing.T) {
	s := predictedStudy(t, "h200", 16, 64)
	m := &s.Models[0]
	for i := range m.Cells {
		c := &m.Cells[i]
		c.Largest, c.Picture = nil, nil
		for j := range c.Phases {
			c.Phases[j] = study.PhaseUsage{Name: c.Phases[j].Name, Peak: c.Phases[j].Peak}
		}
	}
	var texts, page bytes.Buffer
	for _, write := range []func(io.Writer, int) error{s.WritePeaks, s.WriteMixed, s.WriteLargest} {
		if err := write(&texts, 100); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.WriteHTML(&page, nil); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{texts.String(), page.String()} {
		if strings.Contains(text, " 0 B") || strings.Contains(text, "NaN") || !strings.Contains(text, "Nothing was recorded") || !strings.Contains(text, "The peak of training goes from") {
			t.Errorf("says what it does not know, or not what it does:\n%.3000s", text)
		}
	}
}

// made is a result with peaks by phase; each phase has the categories given.
func made(phases ...study.PhaseUsage) *study.Result {
	r := &study.Result{Engine: evidence.Measured, Peak: &study.Peak{}, Phases: phases, Provenance: &study.Provenance{}}
	for i := range r.Phases {
		p := &r.Phases[i]
		for _, m := range p.Made {
			p.Requested += m.Bytes
		}
		p.Allocated, p.Reserved = p.Requested, p.Requested
		if p.Allocated > r.Peak.Allocated {
			*r.Peak = p.Peak
			r.Peak.Phase = p.Name
		}
	}
	return r
}

func phaseOf(name string, gib map[trace.Category]int) study.PhaseUsage {
	p := study.PhaseUsage{Name: name}
	for _, c := range trace.Categories {
		if gib[c] > 0 {
			p.Made = append(p.Made, study.CategoryBytes{Category: c.String(), Bytes: bytesize.Bytes(gib[c]) * bytesize.GiB, Count: 1})
		}
	}
	return p
}

func forwardOf(activations int) study.PhaseUsage {
	return phaseOf(trace.ForwardMark, map[trace.Category]int{trace.Parameter: 10, trace.Activation: activations})
}

func stepOf(temporaries int) study.PhaseUsage {
	return phaseOf(trace.OptimizerMark, map[trace.Category]int{trace.Parameter: 10, trace.OptimizerState: 20, trace.Temporary: temporaries})
}

// modelOf puts results in the places of a plan: contexts 1 and 4, forward and
// training, and at 4 in mixed precision too.
func modelOf(short, long, mixed [2]*study.Result) *ModelStudy {
	p := &study.Plan{Contexts: []int64{1, 4}, Mixed: workload.AMPBF16}
	m := &ModelStudy{Size: "x", plan: p}
	for i, results := range [][2]*study.Result{short, long, mixed} {
		for j, r := range results {
			w := &workload.Workload{
				Sequence: []int64{1, 4, 4}[i], Phase: []workload.Phase{workload.Forward, workload.Train}[j],
				Precision: []workload.Precision{workload.FP32, workload.FP32, workload.AMPBF16}[i],
			}
			m.Cells = append(m.Cells, StudyCell{Finding: study.Finding{Cell: study.Cell{Workload: w}, Result: r}})
		}
	}
	return m
}

var update = flag.Bool("update", false, "rewrite testdata/sentences.txt")

// Sentences say only what the numbers bear out.
func TestSentences(t *testing.T) {
	copies := func(p study.PhaseUsage, gib int) study.PhaseUsage {
		p.WeightCopies = bytesize.Bytes(gib) * bytesize.GiB
		return p
	}
	flat := modelOf(
		[2]*study.Result{made(forwardOf(2)), made(forwardOf(2), stepOf(30))},
		[2]*study.Result{made(forwardOf(8)), made(forwardOf(8), stepOf(30))},
		[2]*study.Result{made(copies(forwardOf(12), 5)), made(copies(forwardOf(12), 5), stepOf(30))})
	growing := modelOf(
		[2]*study.Result{made(forwardOf(2)), made(forwardOf(2), stepOf(1))},
		[2]*study.Result{made(forwardOf(40)), made(forwardOf(40), stepOf(1))},
		[2]*study.Result{made(copies(forwardOf(20), 2)), made(copies(forwardOf(20), 2), stepOf(1))})
	var got strings.Builder
	for _, part := range []struct {
		name      string
		sentences []string
	}{
		{"a peak that stays in the optimizer's step", flat.peakSentences()},
		{"a peak that moves", growing.peakSentences()},
		{"copies that cost more than is saved", flat.mixedSentences()},
		{"a saving", growing.mixedSentences()},
	} {
		fmt.Fprintf(&got, "# %s\n%s\n\n", part.name, strings.Join(part.sentences, "\n"))
	}
	const golden = "testdata/sentences.txt"
	if *update {
		testmachine.WriteFile(t, golden, got.String())
	}
	want := testmachine.ReadFile(t, golden)
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("make golden rewrites %s:\n%s", golden, diff)
	}
}

func TestWrap(t *testing.T) {
	if got := wrap("one two three √four", 9); got != "one two\nthree\n√four" {
		t.Errorf("wrapped as %q", got)
	}
}
