package server

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/report"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

// The forms of a report.
const (
	pageType    = "text/html; charset=utf-8"
	archiveType = "application/zip"
)

func (s *Server) reportRoute(api huma.API) {
	o := post("report", "/v1/reports", "The whole memory study of a language model",
		"Forward and training at several contexts, fp32 against mixed precision at the longest, and the size of activations, predicted: "+
			"as one page that needs nothing else, or with Accept: application/zip as the folder that memorymark study report writes.", tagStudies)
	o.Responses = map[string]*huma.Response{"200": {Description: "The page, or the folder", Content: map[string]*huma.MediaType{
		"text/html": {Schema: &huma.Schema{Type: "string"}},
		archiveType: {Schema: &huma.Schema{Type: "string", Format: "binary"}},
	}}}
	huma.Register(api, o, func(ctx context.Context, in *reportInput) (*reportOutput, error) {
		out, err := s.report(ctx, in.Body, strings.Contains(in.Accept, archiveType))
		if err != nil {
			return nil, s.problem(ctx, err)
		}
		return out, nil
	})
}

type reportInput struct {
	Accept string `header:"Accept" doc:"text/html or application/zip"`
	Body   ReportQuestion
}

type reportOutput struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

// ReportQuestion is what a study is of. Everything has a default.
type ReportQuestion struct {
	Models    []string           `json:"models,omitempty" enum:"lm-small,lm-medium,lm-large,lm-xl,lm-2.7b" maxItems:"5" doc:"lm-2.7b if absent"`
	Sequences []int64            `json:"sequences,omitempty" minimum:"1" maxItems:"6" doc:"contexts, in tokens; 128, 256 and 512 if absent"`
	Batch     int64              `json:"batch,omitempty" minimum:"1" default:"4"`
	Precision workload.Precision `json:"precision,omitempty" enum:"amp-bf16,amp-fp16" default:"amp-bf16" doc:"what fp32 is compared with; amp-fp16 on a card without bf16"`
	GPU       string             `json:"gpu,omitempty" doc:"an id of /v1/gpus; this machine's card if absent, else h200"`
}

// plan fills in what is absent.
func (s *Server) plan(q ReportQuestion) (*study.Plan, error) {
	card, err := s.card(q.GPU, study.DefaultCard)
	if err != nil {
		return nil, bad("body.gpu", "%v", err)
	}
	if err := errors.Join(once("body.models", q.Models), once("body.sequences", q.Sequences)); err != nil {
		return nil, err
	}
	p := &study.Plan{
		Models: q.Models, Contexts: q.Sequences, Batch: q.Batch, GPU: q.GPU, Card: card,
		Warmup: study.DefaultWarmup, Steps: study.DefaultSteps,
	}
	if p.Mixed, _ = study.Mixed(q.Precision, card); len(p.Models) == 0 {
		p.Models = []string{"lm-2.7b"}
	}
	if len(p.Contexts) == 0 {
		p.Contexts = []int64{128, 256, 512}
	}
	return p, nil
}

// report makes a study's page, or its folder as an archive.
func (s *Server) report(ctx context.Context, q ReportQuestion, asArchive bool) (*reportOutput, error) {
	plan, err := s.plan(q)
	if err != nil {
		return nil, err
	}
	cells, err := plan.Cells()
	if err != nil {
		return nil, &badRequest{detailsOf(err, "body")}
	}
	leave, err := s.compute.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	folder := newArchive(asArchive)
	files := &report.StudyFiles{Plan: plan, Folder: folder, PageAlone: !asArchive}
	results, err := study.Run(ctx, study.Predictor{}, cells, study.Options{Around: s.compute.largePiece, Keep: files.Keep})
	if err != nil {
		return nil, err
	}
	if err := s.compute.piece(ctx, func() error {
		_, _, err := files.Finish(cells, results)
		return predicted(err)
	}); err != nil {
		return nil, err
	}
	if !asArchive {
		page, err := folder.Read(study.IndexFile)
		return &reportOutput{ContentType: pageType, Body: page}, err
	}
	err = folder.zip.Close()
	return &reportOutput{ContentType: archiveType, Disposition: `attachment; filename="memory_profiling.zip"`, Body: folder.data.Bytes()}, err
}

// archive is a study's folder on its way to a client. Snapshots, which are most
// of it, are held packed; pictures and the page are read again.
type archive struct {
	mu   sync.Mutex
	data bytes.Buffer
	zip  *zip.Writer // nil if only the page is wanted
	read map[string][]byte
}

func newArchive(packed bool) *archive {
	a := &archive{read: make(map[string][]byte)}
	if packed {
		a.zip = zip.NewWriter(&a.data)
	}
	return a
}

// Write implements report.Folder.
func (a *archive) Write(name string, content func(io.Writer) error) error {
	var file bytes.Buffer
	if err := content(&file); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !strings.HasSuffix(name, ".pickle") {
		a.read[name] = file.Bytes()
	}
	if a.zip == nil {
		return nil
	}
	w, err := a.zip.Create(name)
	if err == nil {
		_, err = w.Write(file.Bytes())
	}
	return err
}

// Read implements report.Folder.
func (a *archive) Read(name string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if data, ok := a.read[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}
