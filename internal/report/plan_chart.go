package report

import (
	"fmt"
	"io"

	"memorymark/internal/change"
	"memorymark/internal/draw"
	"memorymark/internal/plan"
)

// SVG draws the plan as SVG.
func (p PlanText) SVG(w io.Writer, style draw.Style) error {
	return p.scatter().SVG(w, p.titled(style))
}

// PNG draws the plan as PNG.
func (p PlanText) PNG(w io.Writer, style draw.Style) error {
	return p.scatter().PNG(w, p.titled(style))
}

func (p PlanText) titled(style draw.Style) draw.Style {
	if style.Title == "" {
		style.Title = fmt.Sprintf("Training %s on %s", p.Model, p.amount())
	}
	return style
}

// scatter plots dollars against days for options with a price. Options that
// none beats in both are labelled.
func (p PlanText) scatter() *draw.Scatter {
	s := &draw.Scatter{
		Subtitle: fmt.Sprintf("%d samples for each update; the fastest way that fits, for each card and number of GPUs; memory predicted, times by a time model", p.GlobalBatch),
		XName:    "days", YName: "dollars", YUnit: "$",
		Series: []string{string(change.AllWeights), string(change.Adapters)},
	}
	for _, o := range p.Options {
		if o.Dollars == nil {
			continue
		}
		spot := draw.Spot{X: o.Days, Y: *o.Dollars, Series: seriesOf(o.Trains), Title: gpusText(o.GPU, o.GPUs) + ", " + o.Setup}
		if !p.beaten(o) {
			spot.Label = gpusText(o.GPU, o.GPUs)
		}
		s.Points = append(s.Points, spot)
	}
	for _, m := range p.Misfits {
		if m.Dollars != nil {
			s.Points = append(s.Points, draw.Spot{X: m.Days, Y: *m.Dollars, Series: seriesOf(m.Trains), Hollow: true, Title: gpusText(m.GPU, m.GPUs) + ": " + m.Reason})
		}
	}
	return s
}

func seriesOf(t change.Trains) int {
	if t == change.Adapters {
		return 1
	}
	return 0
}

// beaten reports whether another option that trains the same is both cheaper
// and faster.
func (p PlanText) beaten(o *plan.Option) bool {
	for _, x := range p.Options {
		if x.Trains == o.Trains && x.Dollars != nil && *x.Dollars < *o.Dollars && x.Days < o.Days {
			return true
		}
	}
	return false
}
