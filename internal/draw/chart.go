package draw

import (
	"errors"
	"fmt"
	"io"
	"math"

	"memorymark/internal/bytesize"
)

// Chart is memory as lines or as bars: panels of equal size, each with the same
// series over the same positions of the x axis. Series differ in more than
// colour (dashes and points, or hatching), since charts are printed in grey.
type Chart struct {
	// Subtitles are candidates for the line below the title: the first that
	// fits, else the last.
	Subtitles    []string
	XName, YName string
	Places       []string       // along the x axis
	At           []float64      // positions of lines; nil for bars
	Series       []string       // at most MaxSeries
	Panels       []Panel        // at most MaxPanels
	Columns      int            // of panels, 0 for as many as look well
	Limit        bytesize.Bytes // what PyTorch can reserve on the card, 0 if unknown
}

// Panel is one of the plots of a chart.
type Panel struct {
	Title  string
	Values [][]BarValue // by series, by position
}

// BarValue is one number of a chart.
type BarValue struct {
	Bytes bytesize.Bytes // 0 if unknown
	Fits  bool
	There bool // the chart has a value here
}

// MaxPanels is how many panels are readable in one picture.
const MaxPanels = 12

// ErrTooMuch says that a chart has more series or panels than can be
// distinguished.
var ErrTooMuch = errors.New("the grid has too many dimensions for one chart; use fewer values, or a table")

// SVG draws the chart as SVG.
func (c *Chart) SVG(w io.Writer, style Style) error { return c.write(w, style, (*picture).writeSVG) }

// PNG draws the chart as PNG.
func (c *Chart) PNG(w io.Writer, style Style) error { return c.write(w, style, (*picture).writePNG) }

func (c *Chart) write(w io.Writer, style Style, write func(*picture, io.Writer) error) error {
	if len(c.Panels) > MaxPanels || len(c.Series) > MaxSeries {
		return ErrTooMuch
	}
	return write(c.draw(style.withDefaults()), w)
}

// subtitle returns the first that is not too long.
func (c *Chart) subtitle(width float64) string {
	for i, s := range c.Subtitles {
		if textWidth(s, normal) <= width || i == len(c.Subtitles)-1 {
			return shorten(s, normal, width)
		}
	}
	return ""
}

// panelPlot is a panel being drawn.
type panelPlot struct {
	*picture
	*Chart
	theme          *theme
	panel          *Panel
	x0, x1, y0, y1 float64
	top            float64 // bytes at the top
}

// draw lays the panels out in rows.
func (c *Chart) draw(style Style) *picture {
	theme := style.theme()
	p := &picture{width: style.Width, height: style.Height, background: theme.background}
	p.add(
		text{at: point{24, 38}, string: shorten(style.Title, large, float64(p.width)-48), size: large, fill: theme.text, bold: true},
		text{at: point{24, 60}, string: c.subtitle(float64(p.width) - 48), size: normal, fill: theme.muted},
	)
	top := c.legend(p, theme)
	columns := c.Columns
	if columns == 0 {
		columns = min(max(len(c.Panels), 1), 3)
	}
	rows := (len(c.Panels) + columns - 1) / columns
	for i := range c.Panels {
		width, height := (float64(p.width)-24)/float64(columns), (float64(p.height)-top-12)/float64(rows)
		left, upper := float64(i%columns)*width, top+float64(i/columns)*height
		pp := &panelPlot{picture: p, Chart: c, theme: theme, panel: &c.Panels[i], top: c.top(i)}
		pp.x0, pp.x1, pp.y0, pp.y1 = left+92, left+width-16, upper+30, upper+height-50
		if pp.panel.Title != "" {
			pp.y0 += 22
		}
		pp.draw()
	}
	return p
}

// top is the top of a panel's axis. Panels share it, unless the low ones would
// vanish.
func (c *Chart) top(i int) float64 {
	highest := func(p *Panel) float64 {
		var most bytesize.Bytes
		for _, s := range p.Values {
			for _, v := range s {
				most = max(most, v.Bytes)
			}
		}
		return float64(most)
	}
	low, high := math.Inf(1), 0.0
	for i := range c.Panels {
		low, high = min(low, highest(&c.Panels[i])), max(high, highest(&c.Panels[i]))
	}
	if high > 4*low {
		high = highest(&c.Panels[i])
	}
	if limit := float64(c.Limit); limit < 1.5*high {
		high = max(high, limit)
	}
	return max(high, 1) * 1.1
}

// legend names the series in a row above the panels and returns where it ends.
func (c *Chart) legend(p *picture, theme *theme) float64 {
	x, y := 24.0, 90.0
	if len(c.Series) < 2 {
		return 76
	}
	for i, name := range c.Series {
		if x+60+textWidth(name, normal) > float64(p.width)-24 {
			x, y = 24, y+24
		}
		if c.At == nil {
			p.add(hatched(x, y-11, x+34, y+3, i, theme)...)
		} else {
			p.add(stroke([]point{{x, y - 4}, {x + 34, y - 4}}, i, theme), marker(x+17, y-4, i, theme))
		}
		p.add(text{at: point{x + 42, y}, string: name, size: normal, fill: theme.text})
		x += 42 + textWidth(name, normal) + 34
	}
	return y + 14
}

func (p *panelPlot) draw() {
	p.add(text{at: point{p.x0 - 68, p.y0 - 32}, string: shorten(p.panel.Title, normal, p.x1-p.x0+68), size: normal, fill: p.theme.text, bold: true})
	p.byteAxis()
	p.drawLimit()
	if p.At == nil {
		p.bars()
	} else {
		p.lines()
	}
	p.xAxis()
}

func (p *panelPlot) y(bytes float64) float64 { return p.y1 - bytes/p.top*(p.y1-p.y0) }

func (p *panelPlot) byteAxis() {
	p.add(text{at: point{p.x0 - 68, p.y0 - 12}, string: p.YName, size: small, fill: p.theme.muted})
	ticks, write := byteTicks(p.top, max(2, int((p.y1-p.y0)/50)))
	for _, t := range ticks {
		y := math.Round(p.y(float64(t))) + 0.5
		p.add(
			line{points: []point{{p.x0, y}, {p.x1, y}}, stroke: p.theme.grid, width: 1},
			text{at: point{p.x0 - 8, y + 4}, string: write(t), size: small, fill: p.theme.muted, anchor: right},
		)
	}
}

// drawLimit draws the memory of the card, if the axis includes it.
func (p *panelPlot) drawLimit() {
	if p.Limit == 0 || float64(p.Limit) > p.top {
		return
	}
	y := p.y(float64(p.Limit))
	label := fmt.Sprintf("the card's limit, %v", p.Limit)
	p.add(
		line{points: []point{{p.x0, y}, {p.x1, y}}, stroke: p.theme.failure, width: 1.5, dashed: true, dash: [2]float64{9, 5}},
		text{at: point{p.x0 + 6, y - 5}, string: label, size: small, fill: p.theme.failure}, // memory grows to the right
	)
}

func (p *panelPlot) xAxis() {
	p.add(
		line{points: []point{{p.x0, p.y1}, {p.x1, p.y1}}, stroke: p.theme.muted, width: 1},
		text{at: point{(p.x0 + p.x1) / 2, p.y1 + 38}, string: p.XName, size: small, fill: p.theme.muted, anchor: middle},
	)
	width := (p.x1 - p.x0) / float64(len(p.Places))
	if p.At != nil {
		width = p.x1 - p.x0
	}
	last := math.Inf(-1)
	for i, name := range p.Places {
		x := p.place(i)
		label := shorten(name, small, width-4)
		if half := textWidth(label, small) / 2; x-half > last+6 {
			p.add(text{at: point{x, p.y1 + 19}, string: label, size: small, fill: p.theme.text, anchor: middle})
			last = x + half
		}
		p.add(line{points: []point{{x, p.y1}, {x, p.y1 + 5}}, stroke: p.theme.muted, width: 1})
	}
}

// place returns the x coordinate of a position: the middle of its group of
// bars, or its number's.
func (p *panelPlot) place(i int) float64 {
	if p.At == nil {
		return p.x0 + (float64(i)+0.5)*(p.x1-p.x0)/float64(len(p.Places))
	}
	low, high := p.At[0], p.At[len(p.At)-1]
	if low == high {
		return (p.x0 + p.x1) / 2
	}
	return p.x0 + 24 + (p.At[i]-low)/(high-low)*(p.x1-p.x0-48)
}
