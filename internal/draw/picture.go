// Package draw makes pictures: timelines of memory, and charts of many results.
//
// A picture is a list of areas, lines and texts that can be written as SVG or
// PNG; so both come from the same code and look the same. A timeline can also
// be a page that needs nothing else.
package draw

import (
	"image/color"
	"unicode/utf8"
)

// picture is a drawing before it is written: marks in the order in which they
// are painted. The unit is the pixel; y grows downwards.
type picture struct {
	width, height int
	background    color.NRGBA
	marks         []mark
}

// mark is something that can be drawn both ways.
type mark interface {
	svg(*svgWriter)
	png(*canvas)
}

type point struct{ x, y float64 }

// area is a filled polygon.
type area struct {
	corners []point
	fill    color.NRGBA
	title   string // tooltip in a browser
}

// line is a stroke through points.
type line struct {
	points []point
	stroke color.NRGBA
	width  float64
	dashed bool
	dash   [2]float64 // pixels on and off, 0 for the usual ones
}

// pattern is the length of dashes and gaps.
func (l line) pattern() (on, off float64) {
	if l.dash[0] > 0 {
		return l.dash[0], l.dash[1]
	}
	return 5, 4
}

// anchor is the side of a text at its position.
type anchor uint8

const (
	left anchor = iota
	middle
	right
)

// text is one line of text; its position is on the baseline.
type text struct {
	at     point
	string string
	size   float64
	fill   color.NRGBA
	anchor anchor
	bold   bool
}

func (p *picture) add(m ...mark) { p.marks = append(p.marks, m...) }

func rectangle(x0, y0, x1, y1 float64, fill color.NRGBA) area {
	return area{corners: []point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}, fill: fill}
}

// glyphWidth is how wide a character of the fonts used is, per pixel of size.
// All are monospaced, so that a layout works on machines with other fonts.
const glyphWidth = 0.6

func textWidth(s string, size float64) float64 {
	return float64(utf8.RuneCountInString(s)) * glyphWidth * size
}

// shorten cuts a text to a width.
func shorten(s string, size, width float64) string {
	return tail(s, int(width/(glyphWidth*size)))
}

// tail cuts a text to a number of characters. It cuts the beginning: the end of
// a path is more informative.
func tail(s string, most int) string {
	runes := []rune(s)
	switch {
	case len(runes) <= most:
		return s
	case most < 2:
		return ""
	default:
		return "…" + string(runes[len(runes)-most+1:])
	}
}
