package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"memorymark/internal/draw"
	"memorymark/internal/figure"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

//go:embed html/study.html
var studyText string

//go:embed html/study.css
var studyCSS string

var studyPage = template.Must(template.New("study").Parse(studyText))

// WriteHTML writes the whole study as one page that needs nothing else. The
// files are the names of those next to it, if there are any.
func (s *Study) WriteHTML(w io.Writer, files []string) error {
	var sizes []string
	page := studyData{CSS: template.CSS(studyCSS), Batch: s.plan.Batch, Files: files}
	for i := range s.Models {
		m, err := s.Models[i].data()
		if err != nil {
			return err
		}
		sizes = append(sizes, m.Size)
		page.Models = append(page.Models, m)
	}
	page.Title = "Where the memory of a step goes: " + list(sizes)
	page.Contexts = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.plan.Contexts)), ", "), "[]")
	if len(s.Models) > 0 {
		page.Evidence = s.Models[0].sweep(inFP32).evidence()
	}
	return studyPage.Execute(w, page)
}

// studyData is what the page shows. Everything is text but the pictures, which
// this program has drawn.
type studyData struct {
	Title, Evidence, Contexts string
	CSS                       template.CSS
	Batch                     int64
	Models                    []modelData
	Files                     []string
}

type modelData struct {
	Size, Anchor                  string
	PeakSentences, MixedSentences []string
	Fits                          []string
	PeakChart, MixedChart         template.HTML
	Peaks, Causes, Block          htmlTable
	Timelines                     []timelineData
	Comparisons, Largest          []titledTable
	Symbols                       []study.Symbol
	Products                      []productData
	BlockTotal, Source            string
	Layers                        []layerData
	Stacks                        []stackData
}

type timelineData struct {
	Title     string
	Image     template.URL
	Sentences []string
}

type titledTable struct {
	Title string
	Table htmlTable
}

type productData struct {
	Title, Symbols, Numbers, Count, Bytes string
}

type layerData struct{ Amount, Text string }

type stackData struct {
	What   string
	Frames []string
}

// htmlTable is a table for the page.
type htmlTable struct {
	Head []htmlCell
	Rows [][]htmlCell
}

type htmlCell struct {
	Text   string
	Number bool
}

func (t *table) html() htmlTable {
	t.dropEmpty()
	var out htmlTable
	for _, c := range t.columns {
		out.Head = append(out.Head, htmlCell{strings.ToLower(c.title), c.right})
	}
	for _, r := range t.rows {
		cells := make([]htmlCell, len(r.cells))
		for i, text := range r.cells {
			cells[i] = htmlCell{text, t.columns[i].right}
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}

// data arranges what the page shows of a model.
func (m *ModelStudy) data() (modelData, error) {
	d := modelData{
		Size: m.Size, Anchor: "m" + strings.Map(onlyLetters, m.Size),
		PeakSentences: m.peakSentences(), MixedSentences: m.mixedSentences(), Fits: m.fitTexts(),
		Peaks: m.sweep(inFP32).table().html(), Causes: m.causes().html(),
	}
	var err error
	if d.PeakChart, err = chartHTML(m.sweep(inFP32), m.Size+": peak memory of a step"); err != nil {
		return d, err
	}
	if d.MixedChart, err = chartHTML(m.sweep(m.atLongest), fmt.Sprintf("%s: context %d by precision", m.Size, m.plan.Longest())); err != nil {
		return d, err
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		title := study.SizeOf(c.Cell.Workload.Model) + ", " + describe(c.Cell.Workload)
		t := timelineData{Title: title, Sentences: c.timelineSentences()}
		if c.OutOfMemory != nil {
			t.Sentences = []string{"It does not fit: " + outOfMemory(c.OutOfMemory) + "."}
		}
		if c.Picture != nil {
			t.Image = template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(c.Picture))
		}
		if !c.Recorded() {
			continue
		}
		d.Timelines = append(d.Timelines, t)
		d.Largest = append(d.Largest, titledTable{title, largestTable(c.Largest, 3).html()})
	}
	m.addComparisons(&d)
	m.addActivation(&d)
	for _, s := range m.stacks() {
		d.Stacks = append(d.Stacks, stackData{s.what, s.frames})
	}
	return d, nil
}

func (m *ModelStudy) addComparisons(d *modelData) {
	for _, phase := range []workload.Phase{workload.Forward, workload.Train} {
		if c := m.compared(phase); c != nil {
			for i := range c.Phases {
				if len(c.Phases[i].Full.Made) == 0 {
					continue // nothing was recorded
				}
				title := fmt.Sprintf("%s, at the peak of %s", capital(study.ProfileType(phase)), c.Phases[i].Name)
				d.Comparisons = append(d.Comparisons, titledTable{title, m.comparison(&c.Phases[i]).html()})
			}
		}
	}
}

func (m *ModelStudy) addActivation(d *modelData) {
	a := Activation{m.Activation}
	d.Symbols, d.Block, d.BlockTotal = a.Symbols, a.blockTable().html(), capital(a.blockTotal())
	d.Source = a.source()
	for _, p := range []struct {
		title string
		of    study.Product
	}{{"One tensor of the residual stream", a.Residual}, {"The attention scores of one layer", a.Scores}} {
		d.Products = append(d.Products, productData{p.title, p.of.Symbols, p.of.Numbers, figure.Count(int(p.of.Bytes)), p.of.Bytes.String()})
	}
	for _, l := range a.layers() {
		d.Layers = append(d.Layers, layerData{l.amount.String(), l.text})
	}
}

// fitTexts say what does not fit, and what would.
func (m *ModelStudy) fitTexts() []string {
	var out []string
	for i := range m.Cells {
		c := &m.Cells[i]
		if c.OutOfMemory == nil {
			continue
		}
		s := fmt.Sprintf("%s does not fit: %s.", capital(describe(c.Cell.Workload)), outOfMemory(c.OutOfMemory))
		for _, fit := range fitSentences(c.Cell.Workload, c.Fit) {
			s += " " + fit
		}
		out = append(out, s)
	}
	return out
}

// chartHTML draws a chart into the page.
func chartHTML(s Sweep, title string) (template.HTML, error) {
	var b bytes.Buffer
	if err := s.SVG(&b, draw.Style{Title: title, Light: true, Width: 1200, Height: 560}); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil //nolint:gosec // drawn by this program, texts escaped
}

func onlyLetters(r rune) rune {
	if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return '-'
}
