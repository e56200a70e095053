package report

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/draw"
	"memorymark/internal/study"
	"memorymark/internal/trace"
)

// This file decides how a grid becomes a chart. One varied key goes along the
// x axis, one makes the series, and the others make panels. Precisions are
// compared in groups of bars; else what is a number is drawn as lines. Where
// nothing is left to make series, the parts of the step are.

// SVG draws the sweep as SVG.
func (s Sweep) SVG(w io.Writer, style draw.Style) error { return s.chart().SVG(w, titled(style)) }

// PNG draws the sweep as PNG.
func (s Sweep) PNG(w io.Writer, style draw.Style) error { return s.chart().PNG(w, titled(style)) }

func titled(style draw.Style) draw.Style {
	if style.Title == "" {
		style.Title = "Peak memory of a step"
	}
	return style
}

// engine is the kind of evidence that the cells give.
func (s Sweep) engine() string {
	var kinds []string
	for i := range s.Cells {
		if kind := string(s.Cells[i].Engine); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, " and ")
}

// roles say what the varied keys do in a chart.
type roles struct {
	x, series *study.Axis // nil for none
	panels    []study.Axis
	lines     bool
}

func (s Sweep) roles() roles {
	rest := s.Varied()
	take := func(wanted ...string) *study.Axis {
		for _, key := range wanted {
			if i := slices.IndexFunc(rest, func(a study.Axis) bool { return a.Key == key }); i >= 0 {
				a := rest[i]
				rest = slices.Delete(rest, i, i+1)
				return &a
			}
		}
		return nil
	}
	var r roles
	if r.x = take("batch", "sequence", "image", "accumulate", "limit_gib"); r.x != nil && r.x.Key == "batch" && len(r.x.Values) < 3 {
		if other := take("sequence"); other != nil { // the longer one is worth the axis
			rest = append(rest, *r.x)
			r.x = other
		}
	}
	r.series = take("precision", "phase")
	r.lines = r.x != nil && (r.series == nil || r.series.Key != "precision" || r.x.Key == "batch")
	if r.x == nil {
		r.x = take("model", "phase", "optimizer", "gpu")
	}
	if r.series == nil && !slices.ContainsFunc(rest, func(a study.Axis) bool { return a.Key == "model" }) && len(rest) > 0 {
		r.series = &rest[0]
		rest = rest[1:]
	}
	if r.x == nil && r.series != nil {
		r.x, r.series = r.series, nil
	}
	r.panels = rest
	return r
}

// chart arranges the cells.
func (s Sweep) chart() *draw.Chart {
	r := s.roles()
	if r.x == nil {
		r.x = &study.Axis{Key: "model", Values: []string{""}}
	}
	// The first of two keys goes across and the second down.
	slices.Reverse(r.panels)
	combinations := study.Grid{Axes: r.panels}.Points()
	series := s.series(r)
	c := &draw.Chart{
		Subtitles: []string{strings.Join(nonEmpty(s.constants(), s.evidence()), " · "), s.constants() + " · " + s.engine()},
		XName:     axisTitle(r.x.Key), YName: "peak allocated memory", Limit: s.limit(),
	}
	values := slices.Clone(r.x.Values)
	if r.lines {
		slices.SortFunc(values, func(a, b string) int { return int(number(a) - number(b)) })
	}
	for _, v := range values {
		c.Places = append(c.Places, axisText(r.x.Key, v))
		if r.lines {
			c.At = append(c.At, number(v))
		}
	}
	for _, one := range series {
		c.Series = append(c.Series, one.name)
	}
	for _, combination := range combinations {
		c.Panels = append(c.Panels, s.panel(r.x.Key, values, series, combination.Values, r.panels))
	}
	if across := len(r.panels) - 1; across > 0 && len(r.panels[across].Values) <= 5 {
		c.Columns = len(r.panels[across].Values)
	}
	return c
}

// chartSeries picks the cells and the number of a series.
type chartSeries struct {
	name  string
	of    map[string]string // values that its cells have
	phase string            // the part of the step, "" for all
}

func (s Sweep) series(r roles) []chartSeries {
	var out []chartSeries
	if r.series != nil {
		for _, v := range r.series.Values {
			out = append(out, chartSeries{name: axisText(r.series.Key, v), of: map[string]string{r.series.Key: v}})
		}
		return out
	}
	for _, phase := range []string{trace.ForwardMark, trace.BackwardMark, trace.OptimizerMark} {
		if slices.ContainsFunc(s.Cells, func(c study.SweepCell) bool { return c.Phase(phase) != nil }) {
			out = append(out, chartSeries{name: "peak in " + phase, phase: phase})
		}
	}
	if len(out) < 2 {
		return []chartSeries{{name: "peak"}}
	}
	return out
}

func (s Sweep) panel(x string, values []string, series []chartSeries, of map[string]string, axes []study.Axis) draw.Panel {
	var p draw.Panel
	var title []string
	for _, a := range axes {
		title = append(title, axisName(a.Key)+" "+axisText(a.Key, of[a.Key]))
	}
	p.Title = strings.Join(title, ", ")
	for _, one := range series {
		row := make([]draw.BarValue, len(values))
		for i, v := range values {
			want := map[string]string{}
			for _, m := range []map[string]string{of, one.of} {
				for key, value := range m {
					want[key] = value
				}
			}
			if v != "" {
				want[x] = v
			}
			row[i] = s.find(want, one.phase)
		}
		p.Values = append(p.Values, row)
	}
	return p
}

// find returns the number of the cell that has some values.
func (s Sweep) find(want map[string]string, phase string) draw.BarValue {
	for i := range s.Cells {
		c := &s.Cells[i]
		matches := true
		for key, v := range want {
			matches = matches && c.Values[key] == v
		}
		if !matches {
			continue
		}
		v := draw.BarValue{Bytes: peakOf(c.Result).Allocated, Fits: c.Fits(), There: true}
		if phase != "" {
			v.Bytes = 0
			if p := c.Phase(phase); p != nil {
				v.Bytes = p.Allocated
			}
		}
		return v
	}
	return draw.BarValue{}
}

// limit is what PyTorch may use, if all cells that did not fit agree.
func (s Sweep) limit() bytesize.Bytes {
	var limit bytesize.Bytes
	for i := range s.Cells {
		oom := s.Cells[i].OutOfMemory
		switch {
		case oom == nil:
		case limit == 0:
			limit = oom.Limit
		case limit != oom.Limit:
			return 0
		}
	}
	return limit
}

// axisTitle names an axis with its unit.
func axisTitle(key string) string {
	units := map[string]string{
		"sequence": "context length (tokens)", "batch": "batch size (samples)", "image": "image size (pixels)", "limit_gib": "limit (GiB)",
		"accumulate": "accumulated passes", "phase": "part of a step",
	}
	if title, ok := units[key]; ok {
		return title
	}
	return axisName(key)
}

func number(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64) // the workloads were made of these values
	return n
}

func nonEmpty(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}
