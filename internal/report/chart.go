package report

import (
	"fmt"
	"math"

	"memorymark/internal/bytesize"
)

// chart is memory as lines or as bars: panels of equal size, each with the same
// series over the same places of its x axis. Series differ in more than colour
// (dashes and points, or hatching), since charts are printed in grey.
type chart struct {
	title, subtitle string
	xName, yName    string
	places          []string  // along the x axis
	at              []float64 // where lines have them; nil for bars
	series          []string
	panels          []panel
	columns         int            // of panels, 0 for as many as look well
	limit           bytesize.Bytes // what the card lets PyTorch hold, 0 if not known
}

// panel is one of the plots of a chart.
type panel struct {
	title  string
	values [][]value // by series, by place
}

// value is one number of a chart.
type value struct {
	bytes bytesize.Bytes // 0 if not known
	fits  bool
	there bool // the grid has such a cell
}

// panelPlot is a panel being drawn.
type panelPlot struct {
	*picture
	*chart
	theme          *theme
	panel          *panel
	x0, x1, y0, y1 float64
	most           float64 // bytes at the top
}

// draw lays the panels out in rows.
func (c *chart) draw(style Style) *picture {
	style = style.withDefaults()
	theme := style.theme()
	p := &picture{width: style.Width, height: style.Height, background: theme.background}
	p.add(
		text{at: point{24, 38}, string: shorten(c.title, large, float64(p.width)-48), size: large, fill: theme.text, bold: true},
		text{at: point{24, 60}, string: shorten(c.subtitle, normal, float64(p.width)-48), size: normal, fill: theme.muted},
	)
	top := c.legend(p, theme)
	columns := c.columns
	if columns == 0 {
		columns = min(max(len(c.panels), 1), 3)
	}
	rows := (len(c.panels) + columns - 1) / columns
	for i := range c.panels {
		width, height := (float64(p.width)-24)/float64(columns), (float64(p.height)-top-12)/float64(rows)
		left, upper := float64(i%columns)*width, top+float64(i/columns)*height
		pp := &panelPlot{picture: p, chart: c, theme: theme, panel: &c.panels[i], most: c.most(i)}
		pp.x0, pp.x1, pp.y0, pp.y1 = left+92, left+width-16, upper+30, upper+height-50
		if pp.panel.title != "" {
			pp.y0 += 22
		}
		pp.draw()
	}
	return p
}

// most is the top of a panel's axis. Panels share it, unless the low ones would
// vanish.
func (c *chart) most(i int) float64 {
	highest := func(p *panel) float64 {
		var most bytesize.Bytes
		for _, s := range p.values {
			for _, v := range s {
				most = max(most, v.bytes)
			}
		}
		return float64(most)
	}
	low, high := math.Inf(1), 0.0
	for i := range c.panels {
		low, high = min(low, highest(&c.panels[i])), max(high, highest(&c.panels[i]))
	}
	if high > 4*low {
		high = highest(&c.panels[i])
	}
	if limit := float64(c.limit); limit < 1.5*high {
		high = max(high, limit)
	}
	return max(high, 1) * 1.1
}

// legend names the series in a row above the panels and returns where it ends.
func (c *chart) legend(p *picture, theme *theme) float64 {
	x, y := 24.0, 90.0
	if len(c.series) < 2 {
		return 76
	}
	for i, name := range c.series {
		if x+60+textWidth(name, normal) > float64(p.width)-24 {
			x, y = 24, y+24
		}
		if c.at == nil {
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
	p.add(text{at: point{p.x0 - 68, p.y0 - 32}, string: shorten(p.panel.title, normal, p.x1-p.x0+68), size: normal, fill: p.theme.text, bold: true})
	p.byteAxis()
	p.drawLimit()
	if p.at == nil {
		p.bars()
	} else {
		p.lines()
	}
	p.xAxis()
}

func (p *panelPlot) y(bytes float64) float64 { return p.y1 - bytes/p.most*(p.y1-p.y0) }

func (p *panelPlot) byteAxis() {
	p.add(text{at: point{p.x0 - 68, p.y0 - 12}, string: p.yName, size: small, fill: p.theme.muted})
	ticks, write := byteTicks(p.most, max(2, int((p.y1-p.y0)/50)))
	for _, t := range ticks {
		y := math.Round(p.y(float64(t))) + 0.5
		p.add(
			line{points: []point{{p.x0, y}, {p.x1, y}}, stroke: p.theme.grid, width: 1},
			text{at: point{p.x0 - 8, y + 4}, string: write(t), size: small, fill: p.theme.muted, anchor: right},
		)
	}
}

// drawLimit draws what the card has, if the panel reaches so high.
func (p *panelPlot) drawLimit() {
	if p.limit == 0 || float64(p.limit) > p.most {
		return
	}
	y := p.y(float64(p.limit))
	label := fmt.Sprintf("the card's limit, %v", p.limit)
	p.add(
		line{points: []point{{p.x0, y}, {p.x1, y}}, stroke: p.theme.failure, width: 1.5, dashed: true, dash: [2]float64{9, 5}},
		text{at: point{p.x0 + 6, y - 5}, string: label, size: small, fill: p.theme.failure}, // memory grows to the right
	)
}

func (p *panelPlot) xAxis() {
	p.add(
		line{points: []point{{p.x0, p.y1}, {p.x1, p.y1}}, stroke: p.theme.muted, width: 1},
		text{at: point{(p.x0 + p.x1) / 2, p.y1 + 38}, string: p.xName, size: small, fill: p.theme.muted, anchor: middle},
	)
	room := (p.x1 - p.x0) / float64(len(p.places))
	if p.at != nil {
		room = p.x1 - p.x0
	}
	last := math.Inf(-1)
	for i, name := range p.places {
		x := p.place(i)
		label := shorten(name, small, room-4)
		if half := textWidth(label, small) / 2; x-half > last+6 {
			p.add(text{at: point{x, p.y1 + 19}, string: label, size: small, fill: p.theme.text, anchor: middle})
			last = x + half
		}
		p.add(line{points: []point{{x, p.y1}, {x, p.y1 + 5}}, stroke: p.theme.muted, width: 1})
	}
}

// place is where a place of the x axis is: in the middle of its group of bars,
// or where its number is.
func (p *panelPlot) place(i int) float64 {
	if p.at == nil {
		return p.x0 + (float64(i)+0.5)*(p.x1-p.x0)/float64(len(p.places))
	}
	low, high := p.at[0], p.at[len(p.at)-1]
	if low == high {
		return (p.x0 + p.x1) / 2
	}
	return p.x0 + 24 + (p.at[i]-low)/(high-low)*(p.x1-p.x0-48)
}
