package server

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/draw"
	"memorymark/internal/figure"
	"memorymark/internal/job"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// picture is a PNG.
type picture struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *Server) registerPicture(api huma.API) {
	op := get("draw-analysis", "/v1/analyses/{id}/picture", "The answer of an analysis as a picture",
		"A PNG of 1200 × 630 pixels, for previews of links: the verdict on the batch of the question, and how full the card is.", tagAnalyses, http.StatusNotFound)
	op.Responses = map[string]*huma.Response{"200": {Description: "The picture", Content: map[string]*huma.MediaType{"image/png": {}}}}
	huma.Register(api, op, func(ctx context.Context, in *analysisID) (*picture, error) {
		v, err := s.previewOf(ctx, in.ID)
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		var png bytes.Buffer
		if err := v.PNG(&png); err != nil {
			return nil, s.problem(ctx, err)
		}
		return &picture{ContentType: "image/png", Body: png.Bytes()}, nil
	})
}

// previewOf is the preview of an analysis that has an answer.
func (s *Server) previewOf(ctx context.Context, id string) (*draw.Preview, error) {
	j, err := s.opts.Jobs.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	a, err := s.describe(ctx, j)
	if err != nil {
		return nil, err
	}
	if a.Answer == nil {
		return nil, job.ErrNoResult
	}
	i := slices.IndexFunc(a.Answer.Results, func(r analysis.Result) bool { return r.Batch == a.Answer.CurrentBatch })
	if i < 0 {
		return nil, job.ErrNoResult
	}
	r := a.Answer.Results[i]
	context := a.Answer.GPUTotal - a.Answer.Limit // what PyTorch may not use
	word, tone := said(r.Verdict)
	return &draw.Preview{
		Word: word, Tone: tone, Lines: asked(a),
		Used: bytesize.Bytes(r.Reserved + context), Card: bytesize.Bytes(a.Answer.GPUTotal),
	}, nil
}

// said is a verdict in a word.
func said(v predict.Verdict) (string, draw.Tone) {
	switch v {
	case predict.Fits:
		return "Yes", draw.Good
	case predict.Tight:
		return "Tight", draw.Warning
	default:
		return "No", draw.Bad
	}
}

// asked says what an analysis is of: the model and how it is trained, and on what.
func asked(a *Analysis) []string {
	w, gpus, name := a.Workload, int64(1), a.Answer.ModelName
	if w.Parallel != nil {
		gpus = w.Parallel.GPUs
	}
	length := figure.Count(int(w.Sequence)) + " tokens"
	if m, err := workload.FindModel(w.Model); err == nil {
		name = m.Name
		if m.Type == "vision" {
			length = figure.Count(int(w.Image)) + " pixels"
		}
	}
	return []string{
		name + ", " + methodOf(w),
		fmt.Sprintf("batch %s, %s, %s", figure.Count(int(w.Batch)), w.Precision, length),
		fmt.Sprintf("on %s × %s", figure.Count(int(gpus)), a.Answer.GPUName),
	}
}

func methodOf(w *workload.Workload) string {
	switch {
	case w.Adapter == nil:
		return "full fine-tuning"
	case w.Quantize != "" && w.Quantize != workload.NotQuantized:
		return "QLoRA"
	default:
		return "LoRA"
	}
}

const analysisPages = "/history/"

// described puts into the page of an analysis what previews of a link to it show. A
// server with tokens says nothing: who asks for the page need not have one.
func (s *Server) described(r *http.Request, page []byte) []byte {
	id, found := strings.CutPrefix(r.URL.Path, analysisPages)
	if !found || s.opts.Tokens != nil || strings.Contains(id, "/") {
		return page
	}
	v, err := s.previewOf(r.Context(), id)
	if err != nil {
		return page // the page itself says what is wrong
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	title := strings.Replace(strings.Join(v.Lines, " "), v.Lines[0], v.Lines[0]+",", 1)
	tags := fmt.Sprintf(`<title>%[1]s · MemoryMark</title>
    <meta property="og:title" content="%[1]s" />
    <meta property="og:description" content="%[2]s: %[3]s of %[4]s" />
    <meta property="og:image" content="%[5]s://%[6]s/v1/analyses/%[7]s/picture" />
    <meta name="twitter:card" content="summary_large_image" />`,
		html.EscapeString(title), v.Word, v.Used, v.Card, scheme, html.EscapeString(r.Host), html.EscapeString(id))
	return bytes.Replace(page, []byte("<title>MemoryMark</title>"), []byte(tags), 1)
}
