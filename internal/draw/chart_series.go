package draw

import (
	"fmt"
	"image/color"

	"memorymark/internal/bytesize"
)

// lines draws each series through its points; it is interrupted where a cell is
// unknown.
func (p *panelPlot) lines() {
	for s, values := range p.panel.Values {
		var run []point
		flush := func() {
			if len(run) > 1 {
				p.add(stroke(run, s, p.theme))
			}
			run = nil
		}
		for i, v := range values {
			if v.Bytes == 0 {
				flush()
				continue
			}
			run = append(run, point{p.place(i), p.y(float64(v.Bytes))})
		}
		flush()
	}
	for s, values := range p.panel.Values { // above all lines
		for i, v := range values {
			switch x, y := p.place(i), p.y(float64(v.Bytes)); {
			case !v.There:
			case !v.Fits:
				p.add(cross(x, min(y, p.y1-8), p.theme)...)
			case v.Bytes > 0:
				p.add(marker(x, y, s, p.theme))
			}
		}
	}
	p.crossNote()
}

// bars draws a group of bars at each position.
func (p *panelPlot) bars() {
	group := (p.x1 - p.x0) / float64(len(p.Places))
	width := min(group*0.8/float64(len(p.Series)), 90)
	for s, values := range p.panel.Values {
		for i, v := range values {
			if !v.There || v.Bytes == 0 && v.Fits {
				continue
			}
			x := p.place(i) + (float64(s)-float64(len(p.Series))/2)*width
			y := p.y(float64(v.Bytes))
			p.add(hatched(x+1, y, x+width-1, p.y1, s, p.theme)...)
			if !v.Fits {
				p.add(cross(x+width/2, min(y, p.y1-8)-12, p.theme)...)
			} else if label := barLabel(v.Bytes); textWidth(label, small) < width {
				p.add(text{at: point{x + width/2, y - 5}, string: label, size: small, fill: p.theme.text, anchor: middle})
			}
		}
	}
	p.crossNote()
}

// barLabel is a number in GiB, or a smaller one with its unit.
func barLabel(b bytesize.Bytes) string {
	switch {
	case b >= 10*bytesize.GiB:
		return fmt.Sprintf("%.1f", float64(b)/float64(bytesize.GiB))
	case b >= bytesize.GiB:
		return fmt.Sprintf("%.2f", float64(b)/float64(bytesize.GiB))
	default:
		return b.String()
	}
}

// crossNote explains the crosses, if there are any.
func (p *panelPlot) crossNote() {
	for _, values := range p.panel.Values {
		for _, v := range values {
			if v.There && !v.Fits {
				p.add(cross(p.x0+10, p.y1+34, p.theme)...)
				p.add(text{at: point{p.x0 + 20, p.y1 + 38}, string: "does not fit", size: small, fill: p.theme.failure})
				return
			}
		}
	}
}

// dashes of the series' lines; the first is whole.
var dashes = [MaxSeries][2]float64{{}, {12, 5}, {3, 4}, {18, 4}, {7, 3}, {2, 2}}

func stroke(points []point, series int, t *theme) line {
	dash := dashes[series%MaxSeries]
	return line{points: points, stroke: t.series[series%MaxSeries], width: 2.2, dashed: dash[0] > 0, dash: dash}
}

// marker is the point of a series: disc, square, triangle, diamond and their
// like.
func marker(x, y float64, series int, t *theme) mark {
	fill := t.series[series%MaxSeries]
	const r = 6
	shapes := [MaxSeries][]point{
		1: {{x - r, y - r}, {x + r, y - r}, {x + r, y + r}, {x - r, y + r}},
		2: {{x, y - r - 1}, {x + r + 1, y + r}, {x - r - 1, y + r}},
		3: {{x, y - r - 2}, {x + r + 2, y}, {x, y + r + 2}, {x - r - 2, y}},
		4: {{x, y + r + 1}, {x + r + 1, y - r}, {x - r - 1, y - r}},
		5: {{x - 2, y - r}, {x + 2, y - r}, {x + 2, y + r}, {x - 2, y + r}},
	}
	if corners := shapes[series%MaxSeries]; corners != nil {
		return area{corners: corners, fill: fill}
	}
	return disc(x, y, r, fill)
}

func cross(x, y float64, t *theme) []mark {
	const r = 5
	return []mark{
		line{points: []point{{x - r, y - r}, {x + r, y + r}}, stroke: t.failure, width: 2.4},
		line{points: []point{{x - r, y + r}, {x + r, y - r}}, stroke: t.failure, width: 2.4},
	}
}

// hatched is a bar of a series: filled, and hatched from the second one on.
func hatched(x0, y0, x1, y1 float64, series int, t *theme) []mark {
	fill := t.series[series%MaxSeries]
	out := []mark{rectangle(x0, y0, x1, y1, fill)}
	ink := alpha(t.background, 170)
	switch series % MaxSeries {
	case 1:
		out = append(out, diagonals(x0, y0, x1, y1, 9, ink)...)
	case 2:
		out = append(out, stripes(x0, y0, x1, y1, 8, ink)...)
	case 3:
		out = append(out, diagonals(x0, y0, x1, y1, 6, alpha(t.text, 120))...)
	case 4:
		out = append(out, stripes(x0, y0, x1, y1, 5, ink)...)
	case 5:
		out = append(append(out, diagonals(x0, y0, x1, y1, 9, ink)...), stripes(x0, y0, x1, y1, 9, ink)...)
	}
	return append(out, line{points: []point{{x0, y1}, {x0, y0}, {x1, y0}, {x1, y1}}, stroke: t.text, width: 0.8})
}

// diagonals are rising lines across a rectangle.
func diagonals(x0, y0, x1, y1, gap float64, stroke color.NRGBA) []mark {
	var out []mark
	for c := gap; c < x1-x0+y1-y0; c += gap {
		// The line x - x0 + y - y0 = c, within the rectangle.
		from := point{x0 + max(0, c-(y1-y0)), y0 + min(c, y1-y0)}
		to := point{x0 + min(c, x1-x0), y0 + max(0, c-(x1-x0))}
		out = append(out, line{points: []point{from, to}, stroke: stroke, width: 1.4})
	}
	return out
}

// stripes are level lines across a rectangle.
func stripes(x0, y0, x1, y1, gap float64, stroke color.NRGBA) []mark {
	var out []mark
	for y := y1 - gap; y > y0; y -= gap {
		out = append(out, line{points: []point{{x0, y}, {x1, y}}, stroke: stroke, width: 1.4})
	}
	return out
}
