package draw

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/timeline"
)

// TimelineSVG draws a timeline as SVG.
func TimelineSVG(w io.Writer, tl *timeline.Timeline, style Style) error {
	return drawTimeline(tl, style).writeSVG(w)
}

// TimelinePNG draws a timeline as PNG.
func TimelinePNG(w io.Writer, tl *timeline.Timeline, style Style) error {
	return drawTimeline(tl, style).writePNG(w)
}

// plot is a timeline being drawn: the picture, and where in it memory over
// events goes.
type plot struct {
	*picture
	tl             *timeline.Timeline
	theme          *theme
	x0, x1, y0, y1 float64 // left, right, top, bottom
	most           float64 // bytes at the top
	lanes          int     // of phases, below
	phaseNames     []string
}

const (
	laneHeight = 18
	small      = 12 // sizes of text
	normal     = 13
	large      = 19
)

func drawTimeline(tl *timeline.Timeline, style Style) *picture {
	style = style.withDefaults()
	p := newPlot(tl, style)
	p.title(style.Title)
	p.byteAxis()
	p.shapes()
	p.lines()
	p.phases()
	p.eventAxis()
	p.timeAxis()
	p.failures()
	p.peak()
	p.legend(p.x1+32, float64(style.Width)-24)
	return p.picture
}

// newPlot computes the layout of a picture.
func newPlot(tl *timeline.Timeline, style Style) *plot {
	p := &plot{tl: tl, theme: style.theme()}
	p.picture = &picture{width: style.Width, height: style.Height, background: p.theme.background}
	for _, s := range tl.Spans {
		p.lanes = max(p.lanes, s.Depth+1)
		if !slices.Contains(p.phaseNames, s.Name) {
			p.phaseNames = append(p.phaseNames, s.Name)
		}
	}
	panel := min(400, 0.28*float64(style.Width))
	p.x0, p.x1 = 92, float64(style.Width)-panel-32
	p.y0, p.y1 = 122, float64(style.Height)-62-float64(p.lanes*laneHeight)
	most := tl.Peak.Bytes
	for _, l := range []timeline.Line{tl.Allocated, tl.Reserved} {
		if l.Max != nil {
			most = max(most, slices.Max(l.Max))
		}
	}
	p.most = max(1, float64(most)*13/12) // some margin above
	return p
}

func (p *plot) x(column float64) float64 {
	return p.x0 + column/float64(len(p.tl.Moments))*(p.x1-p.x0)
}

func (p *plot) y(bytes int64) float64 {
	return p.y1 - float64(bytes)/p.most*(p.y1-p.y0)
}

func (p *plot) title(title string) {
	p.add(text{at: point{24, 38}, string: shorten(title, large, float64(p.width)-48), size: large, fill: p.theme.text, bold: true})
	facts := []string{fmt.Sprintf("device %d", p.tl.Device)}
	if n := p.tl.To - p.tl.From; n < p.tl.Events {
		facts = append(facts, fmt.Sprintf("events %s to %s of %s", figure.Count(p.tl.From), figure.Count(p.tl.To-1), figure.Count(p.tl.Events)))
	} else {
		facts = append(facts, figure.Count(p.tl.Events)+" events")
	}
	if e := p.tl.Elapsed; e != nil {
		facts = append(facts, figure.About(e[len(e)-1]-e[0]))
	}
	if p.tl.Lost > 0 {
		facts = append(facts, figure.Count(p.tl.Lost)+" events contradict the rest")
	}
	p.add(text{at: point{24, 60}, string: strings.Join(facts, " · "), size: normal, fill: p.theme.muted})
}

// shapes draws the stack. The outline of all comes first: it fills the gaps
// where areas thinner than a pixel meet.
func (p *plot) shapes() {
	p.add(p.between(make([]int64, len(p.tl.Moments)), p.tl.Active.Max, p.theme.of(timeline.ColorOther)))
	for _, b := range p.tl.Bands {
		top := slices.Clone(b.Bottoms)
		for c, h := range b.Heights {
			top[c] += h
		}
		band := p.between(b.Bottoms, top, shade(p.theme.of(p.tl.Groups[b.Group].Color), -2))
		band.title = tail(p.tl.Groups[b.Group].Label, 120) + ", " + smaller(b)
		p.add(band)
	}
	for i := range p.tl.Shapes {
		s := &p.tl.Shapes[i]
		if p.y(0)-p.y(s.Size) < 0.1 {
			continue
		}
		fill := shade(p.theme.of(p.tl.Groups[s.Group].Color), (int(s.ID)+2)%3-1)
		p.add(area{corners: p.outline(s), fill: fill, title: p.describe(s)})
	}
}

// between is the area between two lines.
func (p *plot) between(bottom, top []int64, fill color.NRGBA) area {
	back := p.steps(bottom)
	slices.Reverse(back)
	return area{corners: append(p.steps(top), back...), fill: fill}
}

// outline follows the top of a shape and returns along its bottom.
func (p *plot) outline(s *timeline.Shape) []point {
	top := make([]point, 0, 4*len(s.Steps))
	var bottom []point
	for i, step := range s.Steps {
		end := s.End
		if i+1 < len(s.Steps) {
			end = s.Steps[i+1].Column
		}
		x0, x1 := p.x(float64(step.Column)), p.x(float64(end))
		y0, y1 := p.y(step.Offset), p.y(step.Offset+s.Size)
		top = append(top, point{x0, y1}, point{x1, y1})
		bottom = append(bottom, point{x0, y0}, point{x1, y0})
	}
	slices.Reverse(bottom)
	return append(top, bottom...)
}

// steps returns the stairs of a line with a value for each column.
func (p *plot) steps(values []int64) []point {
	var points []point
	for c, v := range values {
		if c == 0 || v != values[c-1] {
			if c > 0 {
				points = append(points, point{p.x(float64(c)), p.y(values[c-1])})
			}
			points = append(points, point{p.x(float64(c)), p.y(v)})
		}
	}
	return append(points, point{p.x1, p.y(values[len(values)-1])})
}

// lines draws the totals above the stack: their highest values, and faintly
// their minimum within a column.
func (p *plot) lines() {
	draw := func(l timeline.Line, stroke color.NRGBA) {
		if l.Max != nil {
			if !slices.Equal(l.Min, l.Max) {
				p.add(p.between(l.Min, l.Max, alpha(stroke, 50)))
			}
			p.add(line{points: p.steps(l.Max), stroke: stroke, width: 1.2})
		}
	}
	draw(p.tl.Allocated, p.theme.allocated)
	draw(p.tl.Reserved, p.theme.reserved)
}

func (p *plot) describe(s *timeline.Shape) string {
	return fmt.Sprintf("%s %s, %s", bytesize.Bytes(s.Size), tail(p.tl.Groups[s.Group].Label, 120), lifetime(s))
}

func lifetime(s *timeline.Shape) string {
	from, to := "before recording", "the end"
	if s.Born >= 0 {
		from = "event " + figure.Count(s.Born)
	}
	if s.Freed >= 0 {
		to = figure.Count(s.Freed)
	}
	return from + " to " + to
}

func smaller(b timeline.Band) string {
	return fmt.Sprintf("%s smaller allocations, up to %s", figure.Count(b.Count), bytesize.Bytes(b.Largest))
}
