package main

import (
	"fmt"
	"html"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scene is a command and the lines of its answer, with escapes for colours.
type scene struct {
	command string
	lines   []string
}

// Sizes in pixels, and times in seconds.
const (
	charWidth  = 8.4
	lineHeight = 19
	margin     = 20
	titleBar   = 34

	typing  = 2.0 // of a command
	reading = 7.0 // of its answer
)

// draw makes a picture that plays the scenes in turn, for ever. Where motion is
// not wanted it stands still on the first.
func draw(scenes []scene) string {
	rows := 0
	for _, s := range scenes {
		rows = max(rows, len(wrap(s.command))+len(s.lines)+1)
	}
	width, height := int(math.Ceil(columns*charWidth))+2*margin, titleBar+rows*lineHeight+margin
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"A program runs out of memory on an emulated RTX 4090, and fits after one change\">\n",
		width, height, width, height)
	b.WriteString("<style>\n" + style(len(scenes)) + "</style>\n")
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" rx=\"10\" class=\"screen\"/>\n", width, height)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, "<circle cx=\"%d\" cy=\"17\" r=\"6\" fill=\"%s\"/>\n", margin+20*i, colour)
	}
	for i, s := range scenes {
		s.draw(&b, i)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// style has the colours and the clock: each scene has a share of the cycle, in
// which its command is typed and its answer read.
func style(scenes int) string {
	const each = typing + reading
	cycle := each * float64(scenes)
	var b strings.Builder
	b.WriteString("text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#c9d1d9;white-space:pre}\n" +
		".screen{fill:#0d1117;stroke:#30363d}.prompt{fill:#7ee787}.bold{fill:#fff;font-weight:600}.faint{fill:#8b949e}\n")
	share := func(seconds float64) string { return strconv.FormatFloat(100*seconds/cycle, 'f', 2, 64) }
	fmt.Fprintf(&b, "@keyframes scene{0%%,%s%%{opacity:1}%s%%,100%%{opacity:0}}\n", share(each-0.3), share(each))
	fmt.Fprintf(&b, "@keyframes answer{0%%,%s%%{opacity:0}%s%%,100%%{opacity:1}}\n", share(typing+0.2), share(typing+0.3))
	fmt.Fprintf(&b, "@keyframes type{0%%{clip-path:inset(0 100%% 0 0)}%s%%,100%%{clip-path:inset(0 0 0 0)}}\n", share(typing))
	fmt.Fprintf(&b, ".scene{animation:scene %gs infinite both}.answer{animation:answer %gs infinite both}.typed{animation:type %gs infinite both}\n", cycle, cycle, cycle)
	for i := range scenes {
		fmt.Fprintf(&b, ".s%d,.s%d *{animation-delay:%gs}\n", i, i, each*float64(i))
	}
	b.WriteString("@media (prefers-reduced-motion:reduce){.scene,.answer,.typed{animation:none}.scene:not(.s0){opacity:0}}\n")
	return b.String()
}

func (s scene) draw(b *strings.Builder, i int) {
	fmt.Fprintf(b, "<g class=\"scene s%d\">\n<g class=\"typed\">\n", i)
	y := titleBar + lineHeight
	for n, part := range wrap(s.command) {
		prompt := "$ "
		if n > 0 {
			prompt = "> "
		}
		line(b, y, "\x1b[prompt]"+prompt+"\x1b[m"+part)
		y += lineHeight
	}
	b.WriteString("</g>\n<g class=\"answer\">\n")
	for _, text := range s.lines {
		if text != "" {
			line(b, y, text)
		}
		y += lineHeight
	}
	b.WriteString("</g>\n</g>\n")
}

// wrap breaks a command where a flag begins, if it is wider than the terminal.
func wrap(command string) []string {
	const most = columns - 4
	if len(command) <= most {
		return []string{command}
	}
	at := strings.LastIndex(command[:most], " --")
	return append([]string{command[:at] + " \\"}, wrap("    "+command[at+1:])...)
}

// escape is a change of how text looks, as terminals take it; prompt is ours.
var escape = regexp.MustCompile("\x1b\\[([0-9;]*m|prompt\\])")

// line writes a line of the terminal. Its length is stated, so that columns
// stand under each other in every font.
func line(b *strings.Builder, y int, text string) {
	bare := escape.ReplaceAllString(text, "")
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" textLength=\"%.1f\" xml:space=\"preserve\">", margin, y, charWidth*float64(utf8.RuneCountInString(bare)))
	at, open := 0, false
	for _, m := range escape.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(html.EscapeString(text[at:m[0]]))
		if open {
			b.WriteString("</tspan>")
		}
		look := appearance(text[m[2]:m[3]])
		if open = look != ""; open {
			fmt.Fprintf(b, "<tspan %s>", look)
		}
		at = m[1]
	}
	b.WriteString(html.EscapeString(text[at:]))
	if open {
		b.WriteString("</tspan>")
	}
	b.WriteString("</text>\n")
}

// appearance is what an escape stands for, "" if it ends another.
func appearance(code string) string {
	switch code = strings.TrimRight(code, "m]"); {
	case code == "prompt":
		return `class="prompt"`
	case code == "1":
		return `class="bold"`
	case code == "2":
		return `class="faint"`
	case strings.HasPrefix(code, "38;5;"):
		n, _ := strconv.Atoi(code[5:])
		return fmt.Sprintf("fill=\"%s\"", colour(n))
	default:
		return ""
	}
}

// colour is a colour of the cube of 216 that terminals share, a little lighter
// than there, to be read on black.
func colour(n int) string {
	n -= 16
	level := func(v int) int {
		if v == 0 {
			return 60
		}
		return min(255, 95+40*v)
	}
	return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
}
