package draw

import (
	"io"

	"memorymark/internal/bytesize"
)

// Preview is an answer as the picture that other sites show with a link to it.
type Preview struct {
	Word       string // the verdict
	Tone       Tone
	Lines      []string // what was asked
	Used, Card bytesize.Bytes
}

// Tone is what a verdict means: that it fits, is tight or does not fit.
type Tone uint8

// The tones, in the colours that the page has for them.
const (
	Good Tone = iota
	Warning
	Bad
)

var tones = [...]uint32{Good: 0x3ddc84, Warning: 0xffc14d, Bad: 0xff7b7b}

// The size that sites ask for.
const previewWidth, previewHeight = 1200, 630

// PNG writes the picture.
func (v Preview) PNG(w io.Writer) error {
	theme := &dark
	fill := rgb(tones[v.Tone])
	p := &picture{width: previewWidth, height: previewHeight, background: theme.background}
	const edge = 70.0
	p.add(text{at: point{edge, 200}, string: v.Word, size: 150, fill: fill, bold: true})
	for i, said := range v.Lines {
		p.add(text{at: point{edge, 290 + 56*float64(i)}, string: shorten(said, 36, previewWidth-2*edge), size: 36, fill: theme.text})
	}
	// The bar goes past the end of the card where there is more than fits.
	scale := (previewWidth - 2*edge) / float64(max(v.Used, v.Card, 1))
	card, used := edge+scale*float64(v.Card), edge+scale*float64(v.Used)
	const top, bottom = 470.0, 530.0
	p.add(rectangle(edge, top, card, bottom, theme.grid), rectangle(edge, top+6, used, bottom-6, fill))
	p.add(line{points: []point{{card, top - 14}, {card, bottom + 14}}, stroke: theme.text, width: 4})
	p.add(text{at: point{edge, 590}, string: v.Used.String() + " of " + v.Card.String(), size: 30, fill: theme.muted})
	p.add(text{at: point{previewWidth - edge, 590}, string: "MemoryMark", size: 30, fill: theme.muted, anchor: right})
	return p.writePNG(w)
}
