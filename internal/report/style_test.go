package report

import (
	"fmt"
	"image/color"
	"testing"
)

// TestColored compares the colours with the nearest of all of the cube's.
func TestColored(t *testing.T) {
	levels := []int{0, 95, 135, 175, 215, 255}
	for part := range 256 {
		want := 0
		for i, level := range levels {
			if abs(level-part) < abs(levels[want]-part) {
				want = i
			}
		}
		if got := colored(color.RGBA{uint8(part), 0, 255, 255}, "x"); got != fmt.Sprintf("\x1b[38;5;%dmx\x1b[m", 16+36*want+5) {
			t.Errorf("%d: %q, want level %d", part, got, want)
		}
	}
}

func abs(n int) int { return max(n, -n) }

func TestTextWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "model.py:12": 11, heading("GPU"): 3, "größe": 5, "gro\u0308ße": 5, "模型.py": 7, "ｶﾅ": 2, "カナ": 4, "한글": 4, "🚀": 2, "…": 1, "×": 1,
	} {
		if got := textWidth(text); got != want {
			t.Errorf("%q is %d columns wide, want %d", text, got, want)
		}
	}
}
