package main

import (
	"fmt"
	"html"
	"os"
	"strconv"
	"strings"
)

// bar is a tool: how many of the same programs it was exact for, and how far off it was.
type bar struct {
	tool       string
	exact, all int
	median     string
}

// section is the comparison of docs/benchmarks.md that is drawn: that with the most tools.
const section = "## One rank of many GPUs, compared with estimators and formulas"

// readBars reads the table of the section.
func readBars(text string) ([]bar, error) {
	_, text, found := strings.Cut(text, section)
	if !found {
		return nil, fmt.Errorf("docs/benchmarks.md has no section %q", section)
	}
	var bars []bar
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 4 || !strings.Contains(cells[1], " of ") {
			if bars != nil {
				break
			}
			continue
		}
		exact, err := strconv.Atoi(strings.TrimSpace(cells[2]))
		if err != nil {
			return nil, err
		}
		var answered, all int
		if _, err := fmt.Sscanf(strings.TrimSpace(cells[1]), "%d of %d", &answered, &all); err != nil {
			return nil, err
		}
		tool := strings.ReplaceAll(strings.TrimSpace(cells[0]), "`", "")
		tool = strings.Replace(tool, "estimate_zero3_model_states_mem_needs", "ZeRO-3 estimate", 1)
		bars = append(bars, bar{tool, exact, all, strings.TrimSpace(cells[3])})
	}
	return bars, nil
}

// writeBars draws the table as bars.
func writeBars(output string) error {
	text, err := os.ReadFile("docs/benchmarks.md")
	if err != nil {
		return err
	}
	bars, err := readBars(string(text))
	if err != nil {
		return err
	}
	const label, full, row, width = 330, 330, 30, 900
	height := 44 + row*len(bars)
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"Exact answers of six tools for the same programs\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<style>text{font:14px system-ui,sans-serif;fill:#888}.t{font-weight:600}rect{fill:#8882}.e{fill:#00a152}</style>\n")
	fmt.Fprintf(&b, "<text class=\"t\" x=\"8\" y=\"22\">Peaks that are exact to the byte, of the same %d processes measured on an H200</text>\n", bars[0].all)
	for i, t := range bars {
		y := 36 + row*i
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", label-8, y+17, html.EscapeString(t.tool))
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"20\" rx=\"3\"/><rect class=\"e\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"20\" rx=\"3\"/>\n", label, y+2, full, label, y+2, full*t.exact/t.all)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%d of %d, half within %s</text>\n", label+full+10, y+17, t.exact, t.all, t.median)
	}
	b.WriteString("</svg>\n")
	return os.WriteFile(output, []byte(b.String()), 0o644)
}
