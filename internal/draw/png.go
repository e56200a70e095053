package draw

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// canvas is what marks are painted on for a PNG.
type canvas struct {
	*image.RGBA
	rasterizer vector.Rasterizer
	faces      map[faceKey]font.Face
}

type faceKey struct {
	size float64
	bold bool
}

// writePNG writes a picture as PNG.
func (p *picture) writePNG(w io.Writer) error {
	c := &canvas{
		RGBA:  image.NewRGBA(image.Rect(0, 0, p.width, p.height)),
		faces: make(map[faceKey]font.Face),
	}
	draw.Draw(c.RGBA, c.Bounds(), image.NewUniform(p.background), image.Point{}, draw.Src)
	for _, m := range p.marks {
		m.png(c)
	}
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	return encoder.Encode(w, c.RGBA)
}

func (a area) png(c *canvas) { c.fill([][]point{a.corners}, a.fill) }

// png draws each stretch of a line as a thin rectangle.
func (l line) png(c *canvas) {
	var bars [][]point
	for _, stretch := range l.stretches() {
		from, to := stretch[0], stretch[1]
		length := math.Hypot(to.x-from.x, to.y-from.y)
		if length == 0 {
			continue
		}
		// The half width across, and the same along so that corners close.
		dx, dy := (to.x-from.x)/length*l.width/2, (to.y-from.y)/length*l.width/2
		if l.dashed {
			bars = append(bars, []point{{from.x - dy, from.y + dx}, {to.x - dy, to.y + dx}, {to.x + dy, to.y - dx}, {from.x + dy, from.y - dx}})
			continue
		}
		bars = append(bars, []point{
			{from.x - dx - dy, from.y - dy + dx},
			{to.x + dx - dy, to.y + dy + dx},
			{to.x + dx + dy, to.y + dy - dx},
			{from.x - dx + dy, from.y - dy - dx},
		})
	}
	c.fill(bars, l.stroke)
}

// stretches returns the straight parts of a line, or its dashes.
func (l line) stretches() [][2]point {
	var out [][2]point
	for i := 1; i < len(l.points); i++ {
		from, to := l.points[i-1], l.points[i]
		if !l.dashed {
			out = append(out, [2]point{from, to})
			continue
		}
		length := math.Hypot(to.x-from.x, to.y-from.y)
		along := func(d float64) point {
			f := min(d, length) / length
			return point{from.x + (to.x-from.x)*f, from.y + (to.y-from.y)*f}
		}
		on, off := l.pattern()
		for d := 0.0; d < length; d += on + off {
			out = append(out, [2]point{along(d), along(d + on)})
		}
	}
	return out
}

// fill paints polygons. The rasterizer works on their bounding box only: on
// the whole picture, thousands of small areas would take seconds.
func (c *canvas) fill(polygons [][]point, fill color.NRGBA) {
	box := boundingBox(polygons).Intersect(c.Bounds())
	if box.Empty() {
		return
	}
	z := &c.rasterizer
	z.Reset(box.Dx(), box.Dy())
	x, y := float64(box.Min.X), float64(box.Min.Y)
	for _, corners := range polygons {
		for i, p := range corners {
			if i == 0 {
				z.MoveTo(float32(p.x-x), float32(p.y-y))
			} else {
				z.LineTo(float32(p.x-x), float32(p.y-y))
			}
		}
		z.ClosePath()
	}
	z.Draw(c.RGBA, box, image.NewUniform(fill), image.Point{})
}

func boundingBox(polygons [][]point) image.Rectangle {
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, corners := range polygons {
		for _, p := range corners {
			x0, y0, x1, y1 = min(x0, p.x), min(y0, p.y), max(x1, p.x), max(y1, p.y)
		}
	}
	if x0 > x1 {
		return image.Rectangle{}
	}
	return image.Rect(int(math.Floor(x0)), int(math.Floor(y0)), int(math.Ceil(x1)), int(math.Ceil(y1)))
}

func (t text) png(c *canvas) {
	d := font.Drawer{Dst: c.RGBA, Src: image.NewUniform(t.fill), Face: c.face(t.size, t.bold)}
	x := t.at.x
	switch width := textWidth(t.string, t.size); t.anchor {
	case middle:
		x -= width / 2
	case right:
		x -= width
	}
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(x * 64), Y: fixed.Int26_6(t.at.y * 64)}
	d.DrawString(t.string)
}

func (c *canvas) face(size float64, bold bool) font.Face {
	key := faceKey{size, bold}
	if f, ok := c.faces[key]; ok {
		return f
	}
	parsed := fonts()[0]
	if bold {
		parsed = fonts()[1]
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		panic(fmt.Sprintf("font of size %g: %v", size, err)) // sizes are constants of this package
	}
	c.faces[key] = face
	return face
}

// fonts returns the regular and the bold font, which are part of the program.
var fonts = sync.OnceValue(func() [2]*opentype.Font {
	var out [2]*opentype.Font
	for i, data := range [][]byte{gomono.TTF, gomonobold.TTF} {
		parsed, err := opentype.Parse(data)
		if err != nil {
			panic(fmt.Sprintf("embedded font: %v", err))
		}
		out[i] = parsed
	}
	return out
})
