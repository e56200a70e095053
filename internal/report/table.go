package report

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// column is a column of a table. Of those that stretch, the text is cut to
// what room the others leave.
type column struct {
	title   string
	right   bool // numbers
	stretch bool // holds code places, which can be cut
}

// row is a line of a table and what stands below it, indented.
type row struct {
	cells []string
	below []string
	color color.Color // of the cells, nil for none
}

// table is text in columns.
type table struct {
	columns []column
	rows    []row
}

const columnGap = "  "

// write prints the table, indented by two, in at most width columns. Columns
// that are empty are left out.
func (t *table) write(w io.Writer, width int) {
	t.dropEmpty()
	widths := t.widths(width - len(columnGap))
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	fmt.Fprintln(w, lipgloss.NewStyle().Bold(true).Render(t.line(titles, widths)))
	for _, r := range t.rows {
		line := t.line(r.cells, widths)
		if r.color != nil {
			line = lipgloss.NewStyle().Foreground(r.color).Render(line)
		}
		fmt.Fprintln(w, line)
		for _, b := range r.below {
			fmt.Fprintln(w, faint("        "+cutLeft(b, width-8)))
		}
	}
}

func (t *table) dropEmpty() {
	for i := len(t.columns) - 1; i >= 0; i-- {
		if slices.ContainsFunc(t.rows, func(r row) bool { return r.cells[i] != "" }) {
			continue
		}
		t.columns = slices.Delete(t.columns, i, i+1)
		for j := range t.rows {
			t.rows[j].cells = slices.Delete(t.rows[j].cells, i, i+1)
		}
	}
}

// widths returns the widths of the columns. Those that stretch share what is
// left, the last of them taking what the others do not need.
func (t *table) widths(width int) []int {
	widths := make([]int, len(t.columns))
	stretching := 0
	for i, c := range t.columns {
		widths[i] = lipgloss.Width(c.title)
		for _, r := range t.rows {
			widths[i] = max(widths[i], lipgloss.Width(r.cells[i]))
		}
		if c.stretch {
			stretching++
		} else {
			width -= widths[i]
		}
	}
	width -= len(columnGap) * (len(t.columns) - 1)
	for i := len(t.columns) - 1; i >= 0; i-- {
		if t.columns[i].stretch {
			widths[i] = min(widths[i], max(width/stretching, 12))
			width -= widths[i]
			stretching--
		}
	}
	return widths
}

func (t *table) line(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(columnGap)
		if t.columns[i].stretch {
			c = cutLeft(c, widths[i])
		}
		pad := strings.Repeat(" ", max(widths[i]-lipgloss.Width(c), 0))
		if t.columns[i].right {
			b.WriteString(pad + c)
		} else {
			b.WriteString(c + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// cutLeft shortens a place in the code: folders go first, from the left, where
// paths say least, and then the end of the function's name.
func cutLeft(s string, width int) string {
	rest := s
	for lipgloss.Width(s) > max(width, 0) {
		i := strings.IndexByte(rest[1:], '/')
		if i < 0 || strings.IndexByte(rest, ' ') >= 0 && strings.IndexByte(rest, ' ') < i {
			break
		}
		rest = rest[1+i:]
		s = "…" + rest
	}
	if runes := []rune(s); len(runes) > width {
		s = string(runes[:max(width-1, 0)]) + "…"
	}
	return s
}

// WriteText writes the text of a result, without colours where it is not to a
// terminal.
func WriteText(w io.Writer, width int, text func(w io.Writer, width int) error) error {
	var b strings.Builder
	if err := text(&b, width); err != nil {
		return err
	}
	_, err := lipgloss.Fprint(w, b.String())
	return err
}

func faint(s string) string { return lipgloss.NewStyle().Faint(true).Render(s) }

func heading(s string) string { return lipgloss.NewStyle().Bold(true).Render(s) }
