package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"runtime"
	"strings"
	"sync"

	"memorymark/internal/bytesize"
	"memorymark/internal/draw"
	"memorymark/internal/gpu"
	"memorymark/internal/models"
	"memorymark/internal/predict"
	"memorymark/internal/report"
	"memorymark/internal/search"
	"memorymark/internal/workload"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "templates/*.html"))

// setup is how a model is trained on these pages.
type setup struct {
	Name, Flags string
	keys        string // JSON, without the model and the card
}

// setups are what people ask about first. Language models have texts of 1,024 tokens.
var setups = []setup{
	{"Full fine-tuning", "--precision amp-bf16 --checkpointing", `"precision": "amp-bf16", "checkpointing": true`},
	{"LoRA, rank 16", "--lora 16 --precision bf16 --checkpointing", `"precision": "bf16", "checkpointing": true, "adapter": {"kind": "lora", "rank": 16}`},
	{"QLoRA, rank 16", "--lora 16 --quantize nf4-double --checkpointing", `"quantize": "nf4-double", "checkpointing": true, "adapter": {"kind": "lora", "rank": 16}`},
}

// on is the setup on a card: with fp16 autocast where there is no bf16.
func (s setup) on(c *gpu.Card) setup {
	if c.HasBF16() {
		return s
	}
	const fp16 = "amp-fp16"
	s.Flags = strings.NewReplacer("amp-bf16", fp16, "bf16", fp16).Replace(s.Flags)
	s.keys = strings.NewReplacer("amp-bf16", fp16, "bf16", fp16).Replace(s.keys)
	return s
}

// row is the answer for one setup.
type row struct {
	setup
	Command string
	Batch   int64 // the largest; 0 if none trains
	One     bytesize.Bytes
	Why     string // it could not be found out
}

// page is what a page of a model on a card shows.
type page struct {
	Title, Description, Lead string
	Up, Head                 template.HTML
	Model                    *workload.CatalogModel
	Card                     *gpu.Card
	Usable                   bytesize.Bytes
	Rows                     []row
	Report                   string // the text of the best setup that fits
	Address                  string // of the same question in the page
	Others                   []other
}

type other struct{ Address, Name string }

// writeAnswers writes a page for each model on each card, and lists of them.
func (s *site) writeAnswers() error {
	type job struct {
		m *workload.CatalogModel
		c *gpu.Card
	}
	jobs, failed := make(chan job), make(chan error, len(s.models)*len(s.cards))
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for j := range jobs {
				if err := s.writeAnswer(j.m, j.c); err != nil {
					failed <- fmt.Errorf("%s on %s: %w", j.m.ID, j.c.ID, err)
				}
			}
		})
	}
	for _, m := range s.models {
		for _, c := range s.cards {
			jobs <- job{m, c}
		}
	}
	close(jobs)
	working.Wait()
	close(failed)
	var all []error
	for err := range failed {
		all = append(all, err)
	}
	return errors.Join(append(all, s.writeLists())...)
}

func addressOf(m *workload.CatalogModel, c *gpu.Card) string { return "m/" + m.ID + "/" + c.ID + "/" }

func (s *site) writeAnswer(m *workload.CatalogModel, c *gpu.Card) error {
	at := addressOf(m, c)
	p := &page{Model: m, Card: c, Usable: c.Usable(), Up: template.HTML(upFrom(at)), Head: template.HTML(s.previewTags(at, at+"preview.png"))} //nolint:gosec // of ids
	best := -1
	for i, setup := range setups {
		r, w := answer(m, c, setup.on(c))
		if r.Batch > 0 && best < 0 {
			best = i
			text, err := reportOf(w, c, r.Batch)
			if err != nil {
				return err
			}
			p.Report, p.Address = text, string(p.Up)+"?"+query(w, r.Batch)
		}
		p.Rows = append(p.Rows, r)
	}
	p.Title = fmt.Sprintf("%s on %s: largest batch and memory", m.Name, c.Name)
	p.Lead = lead(p, best)
	p.Description = p.Lead
	for _, card := range s.cards {
		if card != c {
			p.Others = append(p.Others, other{string(p.Up) + addressOf(m, card), card.Name})
		}
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "answer.html", p); err != nil {
		return err
	}
	if err := s.listed(at+"index.html", b.Bytes()); err != nil {
		return err
	}
	b.Reset()
	if err := preview(p).PNG(&b, draw.Style{Title: p.Title, Width: 1200, Height: 630}); err != nil {
		return err
	}
	return s.write(at+"preview.png", b.Bytes())
}

// lead says the answer in a sentence.
func lead(p *page, best int) string {
	if best < 0 {
		return fmt.Sprintf("%s does not train on one %s, not even with QLoRA and batch 1.", p.Model.Name, p.Card.Name)
	}
	var can []string
	for _, r := range p.Rows {
		switch {
		case r.Why != "":
		case r.Batch == 0:
			can = append(can, r.Name+" does not fit")
		default:
			can = append(can, fmt.Sprintf("%s up to batch %d", r.Name, r.Batch))
		}
	}
	return fmt.Sprintf("%s on one %s (%v): %s.", p.Model.Name, p.Card.Name, p.Card.Memory.Bytes, strings.Join(can, "; "))
}

// answer finds the largest batch of a setup, and what batch 1 needs.
func answer(m *workload.CatalogModel, c *gpu.Card, how setup) (row, *workload.Workload) {
	r := row{setup: how, Command: fmt.Sprintf("memorymark analyze %s --gpu %s %s", m.ID, c.ID, how.Flags)}
	w, err := workloadOf(m, c, how)
	if err != nil {
		r.Why = err.Error()
		return r, nil
	}
	if w.Sequence == longText {
		r.Command += fmt.Sprintf(" --sequence %d", longText)
	}
	one, err := predict.Predict(w, c, predict.Options{})
	if err != nil {
		r.Why = err.Error()
		return r, nil
	}
	r.One = one.PeakReserved()
	if !one.Fits {
		r.One = one.Breakdown.Total - c.Context.Bytes
		return r, w
	}
	found, err := predict.NewBatches(w, c, nil).Largest(search.Options{})
	if err != nil {
		r.Why = err.Error()
		return r, nil
	}
	r.Batch = found.Largest
	return r, w
}

// longText is how long the texts of language models are on these pages.
const longText = 1024

func workloadOf(m *workload.CatalogModel, c *gpu.Card, how setup) (*workload.Workload, error) {
	text := fmt.Sprintf(`{"model": %q, "gpu": %q, "batch": 1, %s}`, m.ID, c.ID, how.keys)
	w, err := workload.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	if m.Type == "nlp" && models.MaxTokens(m.Config) >= longText {
		w.Sequence = longText
	}
	return w, nil
}

// reportOf is what the command line says of a batch.
func reportOf(w *workload.Workload, c *gpu.Card, batch int64) (string, error) {
	at := *w
	at.Batch = batch
	p, err := predict.Predict(&at, c, predict.Options{})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = report.WriteText(&b, 100, func(w io.Writer, width int) error { return report.PredictionText{Prediction: p}.Write(w, width) })
	return b.String(), err
}

// query is the question of a report in the address of the page.
func query(w *workload.Workload, batch int64) string {
	parts := []string{"model=" + w.Model, "gpu=" + w.GPU, fmt.Sprintf("batch=%d", batch), "precision=" + string(w.Precision)}
	if w.Adapter != nil {
		parts = append(parts, fmt.Sprintf("lora=%d", w.Adapter.Rank))
	}
	if w.Quantize != "" && w.Quantize != workload.NotQuantized {
		parts = append(parts, "quantize="+string(w.Quantize))
	}
	if w.Checkpointing {
		parts = append(parts, "checkpointing=true")
	}
	if w.Sequence == longText {
		parts = append(parts, fmt.Sprintf("sequence=%d", longText))
	}
	return strings.Join(parts, "&")
}

// preview is the picture of a page: what batch 1 needs in each setup, against the card.
func preview(p *page) *draw.Chart {
	chart := &draw.Chart{Subtitles: []string{p.Lead, fmt.Sprintf("on one %s", p.Card.Name)}, YName: "reserved at batch 1", Limit: p.Usable, Series: []string{"batch 1"}}
	values := []draw.BarValue{}
	for _, r := range p.Rows {
		chart.Places = append(chart.Places, r.Name)
		values = append(values, draw.BarValue{Bytes: r.One, Fits: r.Batch > 0, There: r.Why == ""})
	}
	chart.Panels = []draw.Panel{{Values: [][]draw.BarValue{values}}}
	return chart
}

// writeLists writes the list of all pages, and that of each model.
func (s *site) writeLists() error {
	var all []other
	for _, m := range s.models {
		var cards []other
		for _, c := range s.cards {
			cards = append(cards, other{c.ID + "/", c.Name})
		}
		if err := s.writeList("m/"+m.ID+"/", m.Name+": GPU memory and largest batch by card", cards); err != nil {
			return err
		}
		all = append(all, other{m.ID + "/", m.Name})
	}
	return s.writeList("m/", "GPU memory and largest batch, by model", all)
}

func (s *site) writeList(at, title string, items []other) error {
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, "list.html", map[string]any{
		"Title": title, "Description": title, "Items": items, "Up": template.HTML(upFrom(at)), "Head": template.HTML(s.previewTags(at, "preview.png")), //nolint:gosec // of ids
	})
	if err != nil {
		return err
	}
	return s.listed(at+"index.html", b.Bytes())
}
