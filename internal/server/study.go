package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/gpu"
	"memorymark/internal/study"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

func (s *Server) studyRoutes(api huma.API) {
	huma.Register(api, post("sweep", "/v1/sweeps", "A grid of workloads",
		"The memory of every combination of the values given, predicted: peaks by phase, the largest allocations, the time of a step. "+
			"A cell that does not fit its card, or that cannot be, says so in its place.", tagStudies),
		operation(s, s.sweep))
	huma.Register(api, post("derive-activations", "/v1/activations", "How large activations are, step by step",
		"The tensors that a block of a plain language model makes in forward, which of them backward needs, and all of it against "+
			"the peak of a training step in fp32. Other models are not derived.", tagStudies),
		operation(s, func(ctx context.Context, d draft) (*study.Activation, error) { return s.activation(ctx, d.workload) }))
	s.reportRoute(api)
}

// maxSweepCells is the largest grid of a request, some 15 seconds of a core.
const maxSweepCells = 500

// SweepQuestion is a grid: keys of a workload that take several values, over
// those that are the same for all.
type SweepQuestion struct {
	Workload partial     `json:"workload,omitempty" doc:"the keys that are the same for all cells"`
	Axes     []SweepAxis `json:"axes" minItems:"1" maxItems:"20" doc:"the last axis changes fastest; at most 500 cells in total"`
}

// SweepAxis is a key of a workload and the values that it takes.
type SweepAxis struct {
	Key    string       `json:"key" doc:"any key of a workload but id and config" example:"batch"`
	Values []sweepValue `json:"values" minItems:"1" maxItems:"500"`
}

// sweepValue is a value of a key as the command line takes it: text.
type sweepValue string

// UnmarshalJSON takes text, and numbers, true and false as they are written.
func (v *sweepValue) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(v))
	}
	*v = sweepValue(data)
	return nil
}

// Schema implements huma.SchemaProvider.
func (sweepValue) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}, Examples: []any{8}}
}

// grid checks a question.
func (q *SweepQuestion) grid() (*study.Grid, error) {
	g := &study.Grid{Base: q.Workload.keys}
	for i, a := range q.Axes {
		place := fmt.Sprintf("body.axes[%d].key", i)
		_, fixed := q.Workload.keys[a.Key]
		switch {
		case !slices.Contains(workload.KeyNames(), a.Key) || a.Key == "id" || a.Key == "config":
			return nil, bad(place, "%q cannot be varied; these can: %s", a.Key, strings.Join(variable(), ", "))
		case fixed || slices.ContainsFunc(g.Axes, func(other study.Axis) bool { return other.Key == a.Key }):
			return nil, bad(place, "%s is given twice", a.Key)
		}
		axis := study.Axis{Key: a.Key}
		for _, v := range a.Values {
			if !slices.Contains(axis.Values, string(v)) {
				axis.Values = append(axis.Values, string(v))
			}
		}
		g.Axes = append(g.Axes, axis)
	}
	if g.Size() > maxSweepCells {
		return nil, bad("body.axes", "the grid has more than %d cells; give fewer values", maxSweepCells)
	}
	return g, nil
}

// variable are the keys that can be an axis.
func variable() []string {
	return slices.DeleteFunc(workload.KeyNames(), func(key string) bool { return key == "id" || key == "config" })
}

// sweep predicts a grid, cell by cell, until the client leaves.
func (s *Server) sweep(ctx context.Context, q SweepQuestion) (*study.Sweep, error) {
	grid, err := q.grid()
	if err != nil {
		return nil, err
	}
	leave, err := s.compute.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	points := grid.Points()
	work := workbudget.New(workbudget.PerQuestion, ctx.Err)
	var cells []study.Cell
	if err := s.compute.largePiece(ctx, func() (err error) {
		cells, err = s.cells(points, work)
		return err
	}); err != nil {
		return nil, err
	}
	predictor := study.Predictor{Work: work}
	results, err := study.Run(ctx, predictor, cells, study.Options{Around: s.compute.largePiece})
	if err != nil {
		return nil, err
	}
	sweep := &study.Sweep{Axes: grid.Axes}
	for i, r := range results {
		sweep.Cells = append(sweep.Cells, study.SweepCell{Values: points[i].Values, Result: r})
	}
	return sweep, nil
}

// cells makes the cells of a grid, of which at least one must be possible. Each
// reads the whole workload, which takes as long as a prediction if that is long.
func (s *Server) cells(points []study.Point, work *workbudget.Budget) ([]study.Cell, error) {
	cells := make([]study.Cell, len(points))
	for i, p := range points {
		cells[i] = s.cell(p.Draft, work)
		if err := work.Err(); err != nil {
			return nil, predicted(err)
		}
	}
	if !slices.ContainsFunc(cells, func(c study.Cell) bool { return c.Err == nil }) {
		return nil, &badRequest{detailsOf(cells[0].Err, "body.workload")}
	}
	return cells, nil
}

// cell makes a cell of a draft, with the precision that its card has. One that
// cannot be says why.
func (s *Server) cell(d workload.Draft, work *workbudget.Budget) study.Cell {
	w, err := d.WorkloadWithin(work)
	if err != nil {
		return study.Cell{Err: err}
	}
	card, err := s.card(w.GPU, gpu.Default)
	if err != nil {
		return study.Cell{Err: err}
	}
	w.Precision, _ = study.Mixed(w.Precision, card)
	return study.Cell{Workload: w, Card: card, Warmup: study.DefaultWarmup, Steps: study.DefaultSteps}
}

// activation derives the activations of a workload.
func (s *Server) activation(ctx context.Context, w *workload.Workload) (*study.Activation, error) {
	named, card, err := s.onCard(w)
	if err != nil {
		return nil, err
	}
	q := question{key: "activation " + keyOf(named), long: w.Config.Layers() >= longLayers}
	return remembered(ctx, s.compute, q, func(ctx context.Context) (*study.Activation, error) {
		a, err := study.NewActivation(w, card, workbudget.New(workbudget.PerQuestion, ctx.Err))
		return a, predicted(err)
	})
}
