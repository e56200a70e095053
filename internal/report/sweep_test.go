package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/draw"
	"memorymark/internal/evidence"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

// sweepOf makes a sweep in which every cell has a peak of its own, and every
// third does not fit.
func sweepOf(axes ...study.Axis) Sweep {
	s := Sweep{&study.Sweep{Axes: axes}}
	for i, p := range (study.Grid{Axes: axes}).Points() {
		peak := study.Peak{Phase: "backward", Allocated: bytesize.Bytes(i+1) * bytesize.GiB, Reserved: bytesize.Bytes(i+2) * bytesize.GiB}
		r := &study.Result{
			Workload: &workload.Workload{Model: "lm-small"}, Engine: evidence.Predicted, Peak: &peak,
			Phases:     []study.PhaseUsage{{Name: "forward", Peak: peak}, {Name: "backward", Peak: peak}},
			Provenance: &study.Provenance{GPU: "NVIDIA H200", PyTorch: "2.11"},
		}
		if i%3 == 2 {
			r.OutOfMemory = &study.OutOfMemory{Needs: peak.Reserved, Limit: 2 * bytesize.GiB}
		}
		s.Cells = append(s.Cells, study.SweepCell{Values: p.Values, Result: r})
	}
	return s
}

var (
	batches    = study.Axis{Key: "batch", Values: []string{"1", "2", "10"}}
	contexts   = study.Axis{Key: "sequence", Values: []string{"512", "128"}}
	types      = study.Axis{Key: "phase", Values: []string{"forward", "train"}}
	precisions = study.Axis{Key: "precision", Values: []string{"fp32", "amp-bf16"}}
	models     = study.Axis{Key: "model", Values: []string{"lm-small", "lm-xl"}}
	oneGPU     = study.Axis{Key: "gpu", Values: []string{"h200"}}
)

// What is varied decides what a chart shows.
func TestSweepCharts(t *testing.T) {
	for name, test := range map[string]struct {
		axes   []study.Axis
		x      string
		lines  bool
		series []string
		panels []string
	}{
		"against the context, by type":   {[]study.Axis{contexts, types, oneGPU}, "context length (tokens)", true, []string{"forward", "training"}, []string{""}},
		"precisions in groups of bars":   {[]study.Axis{contexts, precisions}, "context length (tokens)", false, []string{"fp32", "amp-bf16"}, []string{""}},
		"lines against the batch":        {[]study.Axis{batches, precisions}, "batch size (samples)", true, []string{"fp32", "amp-bf16"}, []string{""}},
		"parts of a step":                {[]study.Axis{batches}, "batch size (samples)", true, []string{"peak in forward", "peak in backward"}, []string{""}},
		"panels":                         {[]study.Axis{models, contexts, types}, "context length (tokens)", true, []string{"forward", "training"}, []string{"model small", "model xl"}},
		"nothing but words":              {[]study.Axis{models, precisions}, "model", false, []string{"fp32", "amp-bf16"}, []string{""}},
		"a single cell":                  {[]study.Axis{oneGPU}, "model", false, []string{"peak in forward", "peak in backward"}, []string{""}},
		"batches are more than contexts": {[]study.Axis{contexts, batches}, "batch size (samples)", true, []string{"128", "512"}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sweepOf(test.axes...)
			c := s.chart()
			var panels []string
			for _, p := range c.Panels {
				panels = append(panels, p.Title)
				for _, values := range p.Values {
					for _, v := range values {
						if !v.There || v.Bytes == 0 {
							t.Errorf("panel %q misses a cell", p.Title)
						}
					}
				}
			}
			if c.XName != test.x || (c.At != nil) != test.lines || strings.Join(panels, ";") != strings.Join(test.panels, ";") || len(c.Series) != len(test.series) {
				t.Errorf("x %q, lines %v, series %q, panels %q", c.XName, c.At != nil, c.Series, panels)
			}
			checkPictures(t, s)
		})
	}
}

// checkPictures draws a sweep both ways and both light and dark.
func checkPictures(t *testing.T, s Sweep) {
	t.Helper()
	for _, style := range []draw.Style{{Width: 1000, Height: 600}, {Light: true, Width: 640, Height: 360}} {
		var svg, image bytes.Buffer
		if err := errors.Join(s.SVG(&svg, style), s.PNG(&image, style)); err != nil {
			t.Fatal(err)
		}
		if len(s.Cells) > 2 && !strings.Contains(svg.String(), "does not fit") {
			t.Error("the picture does not say what does not fit")
		}
		d := xml.NewDecoder(&svg)
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := png.Decode(&image); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepTooMuchForAPicture(t *testing.T) {
	gpus := study.Axis{Key: "gpu", Values: strings.Split("a b c d e f g h i j k l m n", " ")}
	err := sweepOf(contexts, types, models, gpus).SVG(io.Discard, draw.Style{})
	if !errors.Is(err, draw.ErrTooMuch) {
		t.Errorf("28 panels: %v", err)
	}
}

// Along an axis of numbers, they are in order.
func TestSweepAxisIsInOrder(t *testing.T) {
	c := sweepOf(contexts, types).chart()
	if c.At[0] != 128 || c.Places[1] != "512" {
		t.Errorf("%v %v", c.At, c.Places)
	}
}
