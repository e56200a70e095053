package draw

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
)

// svgWriter keeps the first error of its writer, so that marks need not check.
type svgWriter struct{ *bufio.Writer }

// writeSVG writes a picture as SVG. It scales with its page.
func (p *picture) writeSVG(w io.Writer) error {
	s := &svgWriter{bufio.NewWriter(w)}
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="Go Mono,ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" style="background:%s">`+"\n",
		p.width, p.height, p.width, p.height, hex(p.background))
	rectangle(0, 0, float64(p.width), float64(p.height), p.background).svg(s)
	for _, m := range p.marks {
		m.svg(s)
	}
	s.WriteString("</svg>\n")
	return s.Flush()
}

func (a area) svg(s *svgWriter) {
	s.WriteString(`<path d="`)
	s.path(a.corners)
	s.WriteString(`z"`)
	s.paint("fill", a.fill)
	if a.title == "" {
		s.WriteString("/>\n")
		return
	}
	s.WriteString("><title>")
	s.escape(a.title)
	s.WriteString("</title></path>\n")
}

func (l line) svg(s *svgWriter) {
	s.WriteString(`<path d="`)
	s.path(l.points)
	s.WriteString(`" fill="none"`)
	s.paint("stroke", l.stroke)
	fmt.Fprintf(s, ` stroke-width="%g"`, l.width)
	if l.dashed {
		on, off := l.pattern()
		fmt.Fprintf(s, ` stroke-dasharray="%g %g"`, on, off)
	}
	s.WriteString("/>\n")
}

func (t text) svg(s *svgWriter) {
	fmt.Fprintf(s, `<text x="%s" y="%s" font-size="%g"`, tenths(round(t.at.x)), tenths(round(t.at.y)), t.size)
	if t.anchor != left {
		fmt.Fprintf(s, ` text-anchor="%s"`, [...]string{middle: "middle", right: "end"}[t.anchor])
	}
	if t.bold {
		s.WriteString(` font-weight="bold"`)
	}
	s.paint("fill", t.fill)
	s.WriteString(">")
	s.escape(t.string)
	s.WriteString("</text>\n")
}

// path writes points relative to each other, in tenths of a pixel. Rounding
// comes before taking differences, so errors do not add up.
func (s *svgWriter) path(points []point) {
	var x, y int
	for i, p := range points {
		nx, ny := round(p.x), round(p.y)
		switch {
		case i == 0:
			s.WriteString("M" + tenths(nx) + " " + tenths(ny))
		case nx == x && ny == y:
		case ny == y:
			s.WriteString("h" + tenths(nx-x))
		case nx == x:
			s.WriteString("v" + tenths(ny-y))
		default:
			s.WriteString("l" + tenths(nx-x) + " " + tenths(ny-y))
		}
		x, y = nx, ny
	}
}

func (s *svgWriter) paint(attribute string, c color.NRGBA) {
	fmt.Fprintf(s, ` %s="%s"`, attribute, hex(c))
	if c.A < 255 {
		fmt.Fprintf(s, ` %s-opacity="%.2f"`, attribute, float64(c.A)/255)
	}
}

// escape writes text; characters that XML cannot hold become U+FFFD.
func (s *svgWriter) escape(text string) {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(text))
	s.Write(b.Bytes())
}

func round(v float64) int { return int(math.Round(v * 10)) }

// tenths writes a number of tenths without needless digits.
func tenths(n int) string {
	if n%10 == 0 {
		return strconv.Itoa(n / 10)
	}
	return strconv.FormatFloat(float64(n)/10, 'f', 1, 64)
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
