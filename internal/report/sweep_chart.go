package report

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/study"
	"memorymark/internal/trace"
)

// This file decides how a grid becomes a chart. One varied key goes along the
// x axis, one makes the series, and the others make panels. Precisions are
// compared in groups of bars; else what is a number is drawn as lines. Where
// nothing is left to make series, the parts of the step are.

// mostPanels is how many panels can be read in one picture.
const mostPanels = 12

// SVG draws the sweep as SVG.
func (s *Sweep) SVG(w io.Writer, style Style) error { return s.drawn(style, w, (*picture).writeSVG) }

// PNG draws the sweep as PNG.
func (s *Sweep) PNG(w io.Writer, style Style) error { return s.drawn(style, w, (*picture).writePNG) }

func (s *Sweep) drawn(style Style, w io.Writer, write func(*picture, io.Writer) error) error {
	c, err := s.chart()
	if err != nil {
		return err
	}
	if c.title = style.Title; c.title == "" {
		c.title = "Peak memory of a step"
	}
	if textWidth(c.subtitle, normal) > float64(style.withDefaults().Width)-48 {
		c.subtitle = s.constants() + " · " + s.engine()
	}
	return write(c.draw(style), w)
}

// engine is the kind of evidence that the cells give.
func (s *Sweep) engine() string {
	var kinds []string
	for i := range s.Cells {
		if kind := s.Cells[i].Engine; kind != "" && !slices.Contains(kinds, kind) {
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

func (s *Sweep) roles() roles {
	rest := s.varied()
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
func (s *Sweep) chart() (*chart, error) {
	r := s.roles()
	if r.x == nil {
		r.x = &study.Axis{Key: "model", Values: []string{""}}
	}
	// The first of two keys goes across and the second down.
	slices.Reverse(r.panels)
	combinations := study.Grid{Axes: r.panels}.Points()
	series := s.series(r)
	if len(combinations) > mostPanels || len(series) > seriesStyles {
		return nil, errors.New("the grid varies too much for one picture: draw fewer values, or take a table")
	}
	c := &chart{
		subtitle: strings.Join(nonEmpty(s.constants(), s.evidence()), " · "), yName: "peak allocated memory",
		xName: axisTitle(r.x.Key), limit: s.limit(),
	}
	values := slices.Clone(r.x.Values)
	if r.lines {
		slices.SortFunc(values, func(a, b string) int { return int(number(a) - number(b)) })
	}
	for _, v := range values {
		c.places = append(c.places, axisText(r.x.Key, v))
		if r.lines {
			c.at = append(c.at, number(v))
		}
	}
	for _, one := range series {
		c.series = append(c.series, one.name)
	}
	for _, combination := range combinations {
		c.panels = append(c.panels, s.panel(r.x.Key, values, series, combination.Values, r.panels))
	}
	if across := len(r.panels) - 1; across > 0 && len(r.panels[across].Values) <= 5 {
		c.columns = len(r.panels[across].Values)
	}
	return c, nil
}

// chartSeries picks the cells and the number of a series.
type chartSeries struct {
	name  string
	of    map[string]string // values that its cells have
	phase string            // the part of the step, "" for all
}

func (s *Sweep) series(r roles) []chartSeries {
	var out []chartSeries
	if r.series != nil {
		for _, v := range r.series.Values {
			out = append(out, chartSeries{name: axisText(r.series.Key, v), of: map[string]string{r.series.Key: v}})
		}
		return out
	}
	for _, phase := range []string{trace.ForwardMark, trace.BackwardMark, trace.OptimizerMark} {
		if slices.ContainsFunc(s.Cells, func(c SweepCell) bool { return c.Phase(phase) != nil }) {
			out = append(out, chartSeries{name: "peak in " + phase, phase: phase})
		}
	}
	if len(out) < 2 {
		return []chartSeries{{name: "peak"}}
	}
	return out
}

func (s *Sweep) panel(x string, values []string, series []chartSeries, of map[string]string, axes []study.Axis) panel {
	var p panel
	var title []string
	for _, a := range axes {
		title = append(title, axisName(a.Key)+" "+axisText(a.Key, of[a.Key]))
	}
	p.title = strings.Join(title, ", ")
	for _, one := range series {
		row := make([]value, len(values))
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
		p.values = append(p.values, row)
	}
	return p
}

// find returns the number of the cell that has some values.
func (s *Sweep) find(want map[string]string, phase string) value {
	for i := range s.Cells {
		c := &s.Cells[i]
		matches := true
		for key, v := range want {
			matches = matches && c.Values[key] == v
		}
		if !matches {
			continue
		}
		v := value{bytes: peakOf(c.Result).Allocated, fits: c.Fits(), there: true}
		if phase != "" {
			v.bytes = 0
			if p := c.Phase(phase); p != nil {
				v.bytes = p.Allocated
			}
		}
		return v
	}
	return value{}
}

// limit is what PyTorch may hold, if all cells that did not fit agree.
func (s *Sweep) limit() bytesize.Bytes {
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
