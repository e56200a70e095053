package predict

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// accuracyPicture shows how far off each kind of comparison is.
const accuracyPicture = "../../docs/images/accuracy.svg"

// pictureBands are the shares that the picture distinguishes, from near to far.
var pictureBands = []struct {
	label, color string
	most         float64
}{
	{"exact", "#00a152", 0},
	{"within 1 %", "#3f6fd8", 0.01},
	{"within 10 %", "#f2a33a", 0.10},
	{"farther", "#c25555", math.Inf(1)},
}

// picture draws a bar for each kind of comparison, cards together.
func (f *figures) picture() []byte {
	var order []string
	counts, cases := make(map[string][]int), make(map[string]int)
	for _, c := range f.comparisons() {
		if cases[c.what] == 0 && len(c.errors) > 0 {
			order, counts[c.what] = append(order, c.what), make([]int, len(pictureBands))
		}
		cases[c.what] += len(c.errors)
		for _, e := range c.errors {
			band := 0
			for math.Abs(e.share) > pictureBands[band].most {
				band++
			}
			counts[c.what][band]++
		}
	}
	const label, full, row, width, top = 600, 400, 22, 1050, 60
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %[1]d %[2]d\" width=\"%[1]d\" height=\"%[2]d\" role=\"img\" aria-label=\"How far off predictions and emulations are, by what was compared\">\n", width, top+row*len(order))
	b.WriteString("<style>text{font:13px system-ui,sans-serif;fill:#888}.t{font-weight:600}</style>\n<text class=\"t\" x=\"8\" y=\"20\">Compared with what was measured: shares of all cases</text>\n")
	for i, band := range pictureBands {
		x := label + 110*i
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"34\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" y=\"45\">%s</text>\n", x, band.color, x+17, band.label)
	}
	for i, what := range order {
		y, x := top+row*i, float64(label)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", label-8, y+13, html.EscapeString(what))
		for band, n := range counts[what] {
			if n > 0 {
				share := full * float64(n) / float64(cases[what])
				fmt.Fprintf(&b, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"16\" fill=\"%s\"><title>%s: %d of %d</title></rect>\n", x, y, share, pictureBands[band].color, pictureBands[band].label, n, cases[what])
				x += share
			}
		}
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%d</text>\n", label+full+8, y+13, cases[what])
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
