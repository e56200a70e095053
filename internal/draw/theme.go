package draw

import (
	"image/color"

	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

// Style is the size and theme of a picture. The zero value is dark, 1600 × 900.
type Style struct {
	Title         string
	Width, Height int      // 0 is 1600 and 900; at least 640 × 360
	Light         bool     // dark on white, for print; an HTML page is as the reader's system else
	Failure       *Failure // what a page in HTML says of how the run ran out of memory
}

func (s Style) withDefaults() Style {
	if s.Width == 0 {
		s.Width = 1600
	}
	if s.Height == 0 {
		s.Height = 900
	}
	s.Width = min(max(s.Width, 640), 16384)
	s.Height = min(max(s.Height, 360), 16384)
	return s
}

func (s Style) theme() *theme {
	if s.Light {
		return &light
	}
	return &dark
}

// theme assigns colours to roles. The dark one is the web page's.
type theme struct {
	background, grid, text, muted color.NRGBA
	peak, allocated, reserved     color.NRGBA
	failure                       color.NRGBA
	phases                        [4]color.NRGBA
	series                        [MaxSeries]color.NRGBA // of charts; they also differ in brightness
	of                            func(timeline.Color) color.NRGBA
}

// MaxSeries is how many series a chart can distinguish.
const MaxSeries = 6

var dark = theme{
	series: [...]color.NRGBA{rgb(0x00c46a), rgb(0x3f6fd8), rgb(0xf2c14e), rgb(0x9a4fb5), rgb(0x8fd3e8), rgb(0xc25555)},

	background: rgb(0x0a0a0a), grid: rgb(0x1e1e1e), text: rgb(0xd8d8d8), muted: rgb(0x8a8a8a),
	peak: rgb(0x00ff88), allocated: rgb(0x7fd8ff), reserved: rgb(0xf0f0f0),
	failure: rgb(0xff4d4d), phases: [...]color.NRGBA{rgb(0x27684a), rgb(0x2f558f), rgb(0x6a4588), rgb(0x7d5c2b)},
	of: palette(categoryDark, [timeline.StackColors]uint32{
		0xdc7f87, 0xb1623d, 0xc89344, 0x857d18, 0x7fae64, 0x1a8f69,
		0x1db4b4, 0x0087ad, 0x6ca1e5, 0x746fbb, 0xb988d0, 0xa95c8a,
	}),
}

var light = theme{
	series: [...]color.NRGBA{rgb(0x1d4e89), rgb(0xf0a35e), rgb(0x2a9d6f), rgb(0xc9b6e4), rgb(0x8c2f39), rgb(0x8fb8c9)},

	background: rgb(0xffffff), grid: rgb(0xe6e6e6), text: rgb(0x1a1a1a), muted: rgb(0x6a6a6a),
	peak: rgb(0x00804a), allocated: rgb(0x0077b6), reserved: rgb(0x202020),
	failure: rgb(0xc62828), phases: [...]color.NRGBA{rgb(0xa6dcc0), rgb(0xb3cdf2), rgb(0xd8bdeb), rgb(0xedd3a4)},
	of: palette(categoryLight, [timeline.StackColors]uint32{
		0xf898a0, 0xcc7a54, 0xe2ac5e, 0x9d9638, 0x97c87c, 0x3da880,
		0x46cece, 0x28a0c7, 0x84baff, 0x8b87d6, 0xd3a1ea, 0xc474a2,
	}),
}

var categoryDark = map[timeline.Color]uint32{
	timeline.Color(trace.Parameter):      0x4f7fc4,
	timeline.Color(trace.OptimizerState): 0x8a6fc0,
	timeline.Color(trace.Workspace):      0x7a8a92,
	timeline.Color(trace.Input):          0x6fb7e6,
	timeline.Color(trace.Gradient):       0xc06fb0,
	timeline.Color(trace.Activation):     0x2f9d97,
	timeline.Color(trace.Temporary):      0xa9a94e,
	timeline.ColorBefore:                 0x3f4650,
	timeline.ColorOther:                  0x6b6b6b,
	timeline.ColorNoStack:                0x8b8794,
}

// Neighbours of the stack differ in brightness: this is the theme for print.
var categoryLight = map[timeline.Color]uint32{
	timeline.Color(trace.Parameter):      0x3d6cb9,
	timeline.Color(trace.OptimizerState): 0xc4b1ea,
	timeline.Color(trace.Workspace):      0x7f929c,
	timeline.Color(trace.Input):          0x3f8fc9,
	timeline.Color(trace.Gradient):       0xa94f98,
	timeline.Color(trace.Activation):     0x9fdcd7,
	timeline.Color(trace.Temporary):      0x8a8a2e,
	timeline.ColorBefore:                 0x98a3b3,
	timeline.ColorOther:                  0xa3a3a3,
	timeline.ColorNoStack:                0xd9d5e0,
}

func palette(named map[timeline.Color]uint32, stacks [timeline.StackColors]uint32) func(timeline.Color) color.NRGBA {
	return func(c timeline.Color) color.NRGBA {
		if c >= timeline.ColorStack {
			return rgb(stacks[int(c-timeline.ColorStack)%len(stacks)])
		}
		return rgb(named[c])
	}
}

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

// shade makes a colour a little darker or lighter, so that neighbours of one
// group can be distinguished.
func shade(c color.NRGBA, step int) color.NRGBA {
	scale := func(v uint8) uint8 { return uint8(min(int(v)*(100+8*step)/100, 255)) }
	return color.NRGBA{R: scale(c.R), G: scale(c.G), B: scale(c.B), A: c.A}
}

func alpha(c color.NRGBA, a uint8) color.NRGBA {
	c.A = a
	return c
}

// CategoryColor is the colour of a category in pictures, for tables next to
// them.
func CategoryColor(c trace.Category) color.Color { return dark.of(timeline.Color(c)) }

// FailureColor is the colour of failures.
func FailureColor() color.Color { return dark.failure }

// Failure is the story of an allocation that failed, in words.
type Failure struct {
	Title, By string
	Sentences []string
	Live      []string // the largest of what was live
	Remedies  []Remedy
	After     string // what the remedies leave open
}

// Remedy is a setting of the allocator and whether it gets past the request that failed.
type Remedy struct {
	Settings, Needs string
	Helps           bool
}
