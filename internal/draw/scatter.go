package draw

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"memorymark/internal/figure"
)

// Scatter is points by two amounts, both on logarithmic axes. Possible points
// are filled, and others are hollow.
type Scatter struct {
	Subtitle     string
	XName, YName string
	XUnit, YUnit string // before a number, as $
	Series       []string
	Points       []Spot
}

// Spot is a point of a scatter.
type Spot struct {
	X, Y   float64 // above 0
	Series int
	Hollow bool
	Label  string // "" for none
	Title  string // tooltip in a browser
}

// SVG draws the scatter as SVG.
func (s *Scatter) SVG(w io.Writer, style Style) error {
	return s.draw(style.withDefaults()).writeSVG(w)
}

// PNG draws the scatter as PNG.
func (s *Scatter) PNG(w io.Writer, style Style) error {
	return s.draw(style.withDefaults()).writePNG(w)
}

// scatterPlot is a scatter being drawn.
type scatterPlot struct {
	*picture
	*Scatter
	theme          *theme
	x0, x1, y0, y1 float64
	xs, ys         decades
}

// decades is a range of a logarithmic axis.
type decades struct{ low, high float64 }

// at returns the position of a value, from 0 to 1.
func (d decades) at(v float64) float64 { return math.Log(v/d.low) / math.Log(d.high/d.low) }

// rangeOf returns a range that contains all values with some margin.
func rangeOf(points []Spot, of func(Spot) float64) decades {
	d := decades{math.Inf(1), 0}
	for _, p := range points {
		d.low, d.high = min(d.low, of(p)), max(d.high, of(p))
	}
	if d.high == 0 {
		return decades{1, 10}
	}
	return decades{d.low / 1.4, d.high * 1.4}
}

// ticks are 1, 2 and 5 times powers of ten, or only powers where there are
// many.
func (d decades) ticks() []float64 {
	factors := []float64{1, 2, 5}
	if d.high/d.low > 1e4 {
		factors = factors[:1]
	}
	var out []float64
	for power := math.Pow(10, math.Floor(math.Log10(d.low))); power <= d.high; power *= 10 {
		for _, f := range factors {
			if v := f * power; v >= d.low && v <= d.high {
				out = append(out, v)
			}
		}
	}
	return out
}

func (s *Scatter) draw(style Style) *picture {
	theme := style.theme()
	p := &scatterPlot{
		picture: &picture{width: style.Width, height: style.Height, background: theme.background}, Scatter: s, theme: theme,
		x0: 110, x1: float64(style.Width) - 40, y0: 140, y1: float64(style.Height) - 70,
		xs: rangeOf(s.Points, func(p Spot) float64 { return p.X }), ys: rangeOf(s.Points, func(p Spot) float64 { return p.Y }),
	}
	p.add(
		text{at: point{24, 38}, string: shorten(style.Title, large, float64(p.width)-48), size: large, fill: theme.text, bold: true},
		text{at: point{24, 60}, string: shorten(s.Subtitle, normal, float64(p.width)-48), size: normal, fill: theme.muted},
	)
	p.legend()
	p.axes()
	for _, hollow := range []bool{true, false} { // points that fit are on top
		for _, at := range s.Points {
			if at.Hollow == hollow {
				p.spot(at)
			}
		}
	}
	p.labels()
	return p.picture
}

func (p *scatterPlot) place(s Spot) (x, y float64) {
	return p.x0 + p.xs.at(s.X)*(p.x1-p.x0), p.y1 - p.ys.at(s.Y)*(p.y1-p.y0)
}

func (p *scatterPlot) legend() {
	x := 24.0
	for i, name := range p.Series {
		p.add(marker(x+6, 92, i, p.theme), text{at: point{x + 20, 96}, string: name, size: normal, fill: p.theme.text})
		x += 20 + textWidth(name, normal) + 30
	}
	p.add(ring(x+6, 92, p.theme.muted), text{at: point{x + 20, 96}, string: "does not fit", size: normal, fill: p.theme.text})
}

func (p *scatterPlot) axes() {
	for _, v := range p.ys.ticks() {
		_, y := p.place(Spot{X: p.xs.low, Y: v})
		p.add(
			line{points: []point{{p.x0, y}, {p.x1, y}}, stroke: p.theme.grid, width: 1},
			text{at: point{p.x0 - 8, y + 4}, string: p.YUnit + tickText(v), size: small, fill: p.theme.muted, anchor: right},
		)
	}
	for _, v := range p.xs.ticks() {
		x, _ := p.place(Spot{X: v, Y: p.ys.low})
		p.add(
			line{points: []point{{x, p.y0}, {x, p.y1}}, stroke: p.theme.grid, width: 1},
			text{at: point{x, p.y1 + 19}, string: p.XUnit + tickText(v), size: small, fill: p.theme.muted, anchor: middle},
		)
	}
	p.add(
		text{at: point{24, p.y0 - 14}, string: p.YName, size: small, fill: p.theme.muted},
		text{at: point{(p.x0 + p.x1) / 2, p.y1 + 42}, string: p.XName, size: small, fill: p.theme.muted, anchor: middle},
	)
}

func tickText(v float64) string {
	if v >= 1000 {
		return figure.Count(int(v))
	}
	return fmt.Sprintf("%g", v)
}

func (p *scatterPlot) spot(s Spot) {
	x, y := p.place(s)
	if s.Hollow {
		inside := disc(x, y, 5, p.theme.background)
		inside.title = s.Title
		p.add(inside, ring(x, y, alpha(p.theme.series[s.Series%MaxSeries], 150)))
		return
	}
	m := marker(x, y, s.Series, p.theme)
	if a, ok := m.(area); ok {
		a.title = s.Title
		m = a
	}
	p.add(m)
}

// ring is a hollow point.
func ring(x, y float64, stroke color.NRGBA) mark {
	outline := disc(x, y, 5, stroke).corners
	return line{points: append(outline, outline[0]), stroke: stroke, width: 1.4}
}

// labels writes the names of points next to them, unless that would overlap
// another.
func (p *scatterPlot) labels() {
	type box struct{ x0, y0, x1, y1 float64 }
	var taken []box
	for _, s := range p.Points {
		if s.Label == "" {
			continue
		}
		x, y := p.place(s)
		width := textWidth(s.Label, small)
		b := box{x + 9, y - 8, x + 9 + width, y + 6}
		if b.x1 > p.x1 {
			b = box{x - 9 - width, y - 8, x - 9, y + 6}
		}
		free := true
		for _, t := range taken {
			free = free && (b.x1 < t.x0 || b.x0 > t.x1 || b.y1 < t.y0 || b.y0 > t.y1)
		}
		if !free {
			continue
		}
		taken = append(taken, b)
		p.add(text{at: point{b.x0, y + 4}, string: s.Label, size: small, fill: p.theme.text})
	}
}
