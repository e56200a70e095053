package report

import (
	"fmt"
	"image/color"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// styled is text between escape sequences that terminals take for a style.
func styled(code, text string) string { return "\x1b[" + code + "m" + text + "\x1b[m" }

func faint(s string) string { return styled("2", s) }

func heading(s string) string { return styled("1", s) }

// colored is text in the nearest of the 6 × 6 × 6 colours that terminals have.
func colored(c color.Color, s string) string {
	index := uint32(16)
	r, g, b, _ := c.RGBA()
	for i, part := range []uint32{r, g, b} {
		index += nearestLevel(part>>8) * []uint32{36, 6, 1}[i]
	}
	return styled(fmt.Sprintf("38;5;%d", index), s)
}

// nearestLevel is the nearest of the levels 0, 95, 135, 175, 215 and 255.
func nearestLevel(part uint32) uint32 {
	if part < 48 {
		return 0
	}
	return max(part-36, 40) / 40
}

var style = regexp.MustCompile("\x1b\\[[0-9;]*m")

// WriteText writes the text of a result for a file or a pipe, without styles.
func WriteText(w io.Writer, width int, text func(w io.Writer, width int) error) error {
	var b strings.Builder
	if err := text(&b, width); err != nil {
		return err
	}
	_, err := io.WriteString(w, style.ReplaceAllString(b.String(), ""))
	return err
}

// textWidth is how many columns of a terminal a text takes.
func textWidth(s string) int {
	n := 0
	for _, r := range style.ReplaceAllString(s, "") {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc):
		case isWide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// isWide reports whether terminals draw a character in two columns, as those of
// Chinese, Japanese and Korean, and emoji.
func isWide(r rune) bool {
	halfWidth := r >= 0xff61 && r <= 0xffdc
	return !halfWidth && unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo) ||
		r >= 0x3000 && r <= 0x303e || r >= 0xff01 && r <= 0xff60 || r >= 0x1f300 && r <= 0x1faff
}
