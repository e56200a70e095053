package draw

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

func (p *plot) byteAxis() {
	ticks, write := byteTicks(p.most, 8)
	for _, t := range ticks {
		y := math.Round(p.y(t)) + 0.5
		p.add(
			line{points: []point{{p.x0, y}, {p.x1, y}}, stroke: p.theme.grid, width: 1},
			text{at: point{p.x0 - 10, y + 4}, string: write(t), size: small, fill: p.theme.muted, anchor: right},
		)
	}
}

// eventAxis is linear: events, not time, are what changes memory.
func (p *plot) eventAxis() {
	y := p.y1 + float64(p.lanes*laneHeight) + 1
	p.axis(y, "event")
	step := max(1, int(roundStep(float64(p.tl.To-p.tl.From), int((p.x1-p.x0)/110))))
	for e := (p.tl.From + step - 1) / step * step; e < p.tl.To; e += step {
		p.tick(p.x(p.tl.X(e)), y, figure.Count(e))
	}
}

// timeAxis places times where events reach them.
func (p *plot) timeAxis() {
	gap := math.Ceil(90 / (p.x1 - p.x0) * float64(len(p.tl.Moments)))
	ticks := p.tl.TimeTicks(int(gap))
	if len(ticks) == 0 {
		return
	}
	y := p.y1 + float64(p.lanes*laneHeight) + 28
	p.axis(y, "time")
	for _, t := range ticks {
		p.tick(p.x(float64(t.Column)), y, figure.Elapsed(t.Micros))
	}
}

func (p *plot) axis(y float64, name string) {
	y = math.Round(y) + 0.5
	p.add(
		line{points: []point{{p.x0, y}, {p.x1, y}}, stroke: p.theme.grid, width: 1},
		text{at: point{p.x0 - 10, y + 16}, string: name, size: small, fill: p.theme.muted, anchor: right},
	)
}

// tick marks a position on an axis; its label does not overlap the axis' name.
func (p *plot) tick(x, y float64, label string) {
	x, y = math.Round(x)+0.5, math.Round(y)+0.5
	at := max(x, p.x0+textWidth(label, small)/2)
	at = min(at, p.x1-textWidth(label, small)/2)
	p.add(
		line{points: []point{{x, y}, {x, y + 5}}, stroke: p.theme.muted, width: 1},
		text{at: point{at, y + 16}, string: label, size: small, fill: p.theme.muted, anchor: middle},
	)
}

// phases draws the spans of the program in lanes below the plot.
func (p *plot) phases() {
	for _, s := range p.tl.Spans {
		x0, x1 := p.x(p.tl.X(s.From)), p.x(p.tl.X(s.To))
		x1 = max(x1-1, x0+1)
		y := p.y1 + float64(s.Depth*laneHeight) + 3
		p.add(rectangle(x0, y, x1, y+laneHeight-4, p.phaseColor(s)))
		for _, label := range p.phaseLabels(s) {
			if textWidth(label, small) < x1-x0-8 {
				p.add(text{at: point{x0 + 4, y + 11}, string: label, size: small, fill: p.theme.text})
				break
			}
		}
	}
}

// phaseLabels are candidates for the label of a phase, the longest first. The
// parts of a step say their peak, and have a dot there.
func (p *plot) phaseLabels(s timeline.Span) []string {
	if s.Depth > 0 || !isPart(s.Name) {
		return []string{s.Label()}
	}
	if s.PeakEvent != p.tl.Peak.Event {
		p.add(disc(p.x(p.tl.X(s.PeakEvent)), p.y(s.Peak), 3, p.theme.text))
	}
	return []string{fmt.Sprintf("%s, peak %v", s.Name, bytesize.Bytes(s.Peak)), s.Name}
}

func (p *plot) phaseColor(s timeline.Span) color.NRGBA {
	return p.theme.phases[slices.Index(p.phaseNames, s.Name)%len(p.theme.phases)]
}

// failures marks allocations that failed; a label that would overlap the
// previous one is left out.
func (p *plot) failures() {
	free := p.x0
	for _, f := range p.tl.Failures {
		x := math.Round(p.x(p.tl.X(f.Event))) + 0.5
		p.add(line{points: []point{{x, p.y0 - 28}, {x, p.y1}}, stroke: p.theme.failure, width: 1.5})
		label := fmt.Sprintf("out of memory: %s requested", bytesize.Bytes(f.Size))
		if f.Free > 0 {
			label += fmt.Sprintf(", %s free on the device", bytesize.Bytes(f.Free))
		}
		if at := p.labelX(label, x); at >= free {
			p.add(text{at: point{at, p.y0 - 32}, string: label, size: normal, fill: p.theme.failure, bold: true})
			free = at + textWidth(label, normal) + 20
		}
	}
}

// peak marks the highest point. Its label is above the plot, where it covers
// nothing.
func (p *plot) peak() {
	at := p.tl.Peak
	if at.Bytes == 0 {
		return
	}
	x := p.x(float64(at.Column) + 0.5)
	p.add(
		line{points: []point{{x, p.y0 - 6}, {x, p.y1}}, stroke: alpha(p.theme.peak, 150), width: 1, dashed: true},
		disc(x, p.y(at.Bytes), 4, p.theme.peak),
	)
	label := fmt.Sprintf("peak %s · event %s", bytesize.Bytes(at.Bytes), figure.Count(at.Event))
	if at.Event < 0 {
		label = fmt.Sprintf("peak %s · before the first event", bytesize.Bytes(at.Bytes))
	}
	if p.tl.Elapsed != nil {
		label += " · " + figure.About(at.Elapsed)
	}
	p.add(text{at: point{p.labelX(label, x), p.y0 - 11}, string: label, size: normal, fill: p.theme.peak, bold: true})
}

// isPart reports whether a phase is a part of a step that MemoryMark marked.
func isPart(name string) bool {
	return name == trace.ForwardMark || name == trace.BackwardMark || name == trace.OptimizerMark
}

// labelX centres a label on x as far as the plot allows.
func (p *plot) labelX(label string, x float64) float64 {
	width := textWidth(label, normal)
	return max(min(x-width/2, p.x1-width), p.x0)
}
