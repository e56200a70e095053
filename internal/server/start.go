package server

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/draw"
	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

//go:embed start.html
var startText string

var startTemplate = template.Must(template.New("start").Parse(startText))

// startTime is how long the start page waits for its answer. One that takes longer is
// for the page's own code to wait for.
const startTime = 300 * time.Millisecond

// modelOfArrival is what people who bring no question look at first, as in the page's own code.
const modelOfArrival = "bert"

// startPage is the question and its answer as people see them before the page's code
// has arrived, which takes seconds on a slow line, or where it never does.
type startPage struct {
	Example bool // no question was asked
	Choices []choice
	Kept    url.Values // of the address
	Answer  *startAnswer
	Known   catalogs
}

// catalogs are what the page's code need not ask for then.
type catalogs struct {
	Models     report.Models        `json:"models"`
	Cards      Cards                `json:"gpus"`
	Prediction *analysis.Prediction `json:"prediction,omitempty"`
}

type choice struct {
	Label, Name string
	Groups      []optionGroup
}

type optionGroup struct {
	Name    string
	Options []option
}

type option struct {
	Value, Name string
	Chosen      bool
}

type startAnswer struct{ Word, Look, Sentence string }

var looks = map[draw.Tone]string{draw.Good: "text-good-text", draw.Warning: "text-warn-text", draw.Bad: "text-bad-text"}

// started puts the start page's first answer into the page. A server with tokens says
// nothing: who asks for the page need not have one.
func (s *Server) started(r *http.Request, page []byte) []byte {
	const root = `<div id="root"></div>`
	if r.URL.Path != "/" || s.opts.Tokens != nil || !bytes.Contains(page, []byte(root)) {
		return page
	}
	asked := r.URL.Query()
	w, err := workloadOf(asked)
	if err != nil {
		return page // the page itself says what is wrong
	}
	w, card, err := s.onCard(w)
	if err != nil {
		return page
	}
	model, err := workload.FindModel(w.Model)
	if err != nil {
		return page
	}
	start := s.startPage(r.Context(), w, model, card)
	start.Example, start.Kept = !asked.Has("model"), asked
	asked.Del("model")
	asked.Del("gpu")
	var b bytes.Buffer
	if err := startTemplate.Execute(&b, start); err != nil {
		return page
	}
	return bytes.Replace(page, []byte(root), []byte(`<div id="root">`+b.String()+`</div>`), 1)
}

func (s *Server) startPage(ctx context.Context, w *workload.Workload, model *workload.CatalogModel, card *gpu.Card) *startPage {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	p := &startPage{Known: catalogs{Models: report.Models{Models: workload.Models()}, Cards: s.cards()}}
	texts, images := optionGroup{Name: "Text"}, optionGroup{Name: "Images"}
	for _, m := range p.Known.Models.Models {
		group := &texts
		if m.Type == "vision" {
			group = &images
		}
		group.Options = append(group.Options, option{m.ID, m.Name, m == model})
	}
	var cards optionGroup
	for _, c := range p.Known.Cards.Cards {
		cards.Options = append(cards.Options, option{c.ID, fmt.Sprintf("%s, %v", c.Name, c.Memory.Bytes), c.ID == card.ID})
	}
	p.Choices = []choice{{"Model", "model", []optionGroup{texts, images}}, {"Card", "gpu", []optionGroup{cards}}}
	if found, err := s.simulate(ctx, w, card, nil); err == nil {
		p.Known.Prediction = found
		word, tone := said(found.Verdict)
		p.Answer = &startAnswer{word, looks[tone], verdictOf(&found.Prediction, model.Name, card)}
	}
	return p
}

// workloadOf is the workload of an address that says all of it with plain keys.
func workloadOf(asked url.Values) (*workload.Workload, error) {
	d := workload.Draft{}
	for key := range asked {
		text := asked.Get(key)
		i := slices.IndexFunc(workload.Keys(), func(k workload.Key) bool { return k.Name == key && plain(k.Kind) })
		switch rank, err := strconv.Atoi(text); {
		case key == "lora" && err == nil:
			d.SetField("adapter", workload.Field{Name: "kind", Kind: workload.Text}, "lora")
			d.SetField("adapter", workload.Field{Name: "rank"}, strconv.Itoa(rank))
		case key == "lora.targets" && asked.Has("lora"):
			d.SetField("adapter", workload.Field{Name: "targets", Kind: workload.Text}, text)
		case i < 0 || key == "id":
			return nil, fmt.Errorf("%s is not for the server to read", key)
		default:
			d.Set(key, text)
		}
	}
	if d.Text("model") == "" {
		d.Set("model", modelOfArrival)
	}
	return d.Workload()
}

func plain(k workload.Kind) bool {
	return slices.Contains([]workload.Kind{workload.Text, workload.Whole, workload.Number, workload.Switch, workload.Choice}, k)
}

// verdictOf says what fits on what, and by how much, in the words of the page's own code.
func verdictOf(p *predict.Prediction, model string, card *gpu.Card) string {
	method, gpus, each := methodOf(p.Workload), int64(1), ""
	if p.Workload.Parallel != nil {
		gpus = p.Workload.Parallel.GPUs
	}
	if gpus > 1 {
		each = " on each"
	}
	subject := fmt.Sprintf("%s of %s at batch %s", strings.ToUpper(method[:1])+method[1:], model, figure.Count(int(p.Workload.Batch)))
	where := fmt.Sprintf("%s × %s", figure.Count(int(gpus)), card.Name)
	switch {
	case p.Verdict == predict.Fits:
		return fmt.Sprintf("%s fits on %s, with %v to spare%s.", subject, where, p.Left, each)
	case p.Verdict == predict.Tight:
		return fmt.Sprintf("%s fits on %s, with only %v to spare%s. Keep %v free: a desktop, another driver or a longer batch may need it.",
			subject, where, p.Left, each, p.Margin)
	case p.Left < 0:
		return fmt.Sprintf("%s does not fit on %s: %v too much%s.", subject, where, -p.Left, each)
	default:
		return fmt.Sprintf("%s does not fit on %s: its memory is too fragmented.", subject, where)
	}
}
