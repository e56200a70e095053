package draw

import (
	"image/color"
	"math"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/timeline"
)

// legend is the column at the right: the lines with their highest values, the
// composition of the peak, and the phases.
type legend struct {
	*plot
	x0, x1, y float64
}

func (p *plot) legend(x0, x1 float64) {
	l := &legend{p, x0, x1, p.y0 - 6}
	if p.tl.Reserved.Max != nil || p.tl.Allocated.Max != nil {
		l.heading("totals", "highest")
		l.total("reserved", p.tl.Reserved, p.theme.reserved)
		l.total("allocated", p.tl.Allocated, p.theme.allocated)
	}
	l.heading("active memory, as requested", "at the peak")
	for _, g := range p.tl.Groups {
		l.entry(p.theme.of(g.Color), 12, g.Label, bytesize.Bytes(g.AtPeak).String())
	}
	l.entry(p.theme.background, 0, "total", bytesize.Bytes(p.tl.Peak.Bytes).String())
	if len(p.phaseNames) > 0 {
		l.heading("phases", "times")
	}
	for i, name := range p.phaseNames {
		times := 0
		for _, s := range p.tl.Spans {
			if s.Name == name {
				times++
			}
		}
		l.entry(p.theme.phases[i%len(p.theme.phases)], 12, name, figure.Count(times))
	}
}

func (l *legend) heading(name, value string) {
	l.y += 18
	l.row(name, value, l.theme.muted, l.x0)
}

func (l *legend) total(name string, line timeline.Line, color color.NRGBA) {
	if line.Max != nil {
		l.entry(color, 3, name, bytesize.Bytes(slices.Max(line.Max)).String())
	}
}

// entry writes a line with a patch of colour, as high as given.
func (l *legend) entry(color color.NRGBA, height float64, name, value string) {
	if height > 0 && l.y < float64(l.height)-20 {
		l.add(rectangle(l.x0, l.y-4-height/2, l.x0+12, l.y-4+height/2, color))
	}
	l.row(name, value, l.theme.text, l.x0+22)
}

// row writes a name and a value; rows that do not fit the picture are left out.
func (l *legend) row(name, value string, color color.NRGBA, x float64) {
	if l.y < float64(l.height)-20 {
		width := l.x1 - x - max(textWidth(value, small), textWidth("100.00 MiB", small)) - 12
		l.add(
			text{at: point{x, l.y}, string: shorten(name, small, width), size: small, fill: color},
			text{at: point{l.x1, l.y}, string: value, size: small, fill: color, anchor: right},
		)
	}
	l.y += 21
}

// disc is a circle, approximated by a polygon.
func disc(x, y, radius float64, fill color.NRGBA) area {
	corners := make([]point, 24)
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(len(corners)))
		corners[i] = point{x + radius*cos, y + radius*sin}
	}
	return area{corners: corners, fill: fill}
}
