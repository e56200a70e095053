package report

import (
	"fmt"
	"image/color"
	"io"
	"regexp"
	"slices"
	"strings"
)

// column is a column of a table. If a table is too wide, spare columns are left
// out, stretching columns are cut to the remaining width, and wrapping columns
// continue in the next line.
type column struct {
	title   string
	right   bool // numbers
	stretch bool // holds code locations, which can be cut
	wraps   bool // holds sentences
	spare   int  // the highest is left out first; 0 never is
}

// row is a line of a table and the indented lines below it.
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
	t.join()
	t.dropEmpty()
	t.dropSpare(width - len(columnGap))
	widths := t.widths(width - len(columnGap))
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	fmt.Fprintln(w, heading(t.line(titles, widths)))
	for _, r := range t.rows {
		for _, cells := range t.wrap(r.cells, widths) {
			line := t.line(cells, widths)
			if r.color != nil {
				line = colored(r.color, line)
			}
			fmt.Fprintln(w, line)
		}
		for _, b := range r.below {
			fmt.Fprintln(w, faint("        "+cutLeft(b, width-8)))
		}
	}
}

// join makes one line of each cell. A hostile file can have function names that
// look like other rows.
func (t *table) join() {
	onOneLine := strings.NewReplacer("\n", " ", "\t", " ")
	for _, r := range t.rows {
		for _, texts := range [][]string{r.cells, r.below} {
			for i, text := range texts {
				texts[i] = onOneLine.Replace(text)
			}
		}
	}
}

func (t *table) dropEmpty() {
	for i := len(t.columns) - 1; i >= 0; i-- {
		if !slices.ContainsFunc(t.rows, func(r row) bool { return r.cells[i] != "" }) {
			t.drop(i)
		}
	}
}

func (t *table) drop(i int) {
	t.columns = slices.Delete(t.columns, i, i+1)
	for j := range t.rows {
		t.rows[j].cells = slices.Delete(t.rows[j].cells, i, i+1)
	}
}

const (
	minWidth      = 12 // of a column that can be cut
	sentenceWidth = 40 // below which spare columns are left out
)

// dropSpare leaves out columns until the rest fits.
func (t *table) dropSpare(width int) {
	for t.natural() > width {
		most := 0
		for i, c := range t.columns {
			if c.spare > t.columns[most].spare {
				most = i
			}
		}
		if t.columns[most].spare == 0 {
			return
		}
		t.drop(most)
	}
}

// natural returns the width of the table, with the minimum width for columns
// that can be cut and some for sentences.
func (t *table) natural() int {
	all := len(columnGap) * (len(t.columns) - 1)
	for i, c := range t.columns {
		switch n := t.width(i); {
		case c.wraps:
			all += min(n, sentenceWidth)
		case c.stretch:
			all += min(n, minWidth)
		default:
			all += n
		}
	}
	return all
}

// width returns the width of a column's longest text.
func (t *table) width(i int) int {
	n := textWidth(t.columns[i].title)
	for _, r := range t.rows {
		n = max(n, textWidth(r.cells[i]))
	}
	return n
}

// wrap breaks the cells of a row that wrap into lines.
func (t *table) wrap(cells []string, widths []int) [][]string {
	out := [][]string{cells}
	for i, c := range t.columns {
		if !c.wraps || textWidth(cells[i]) <= widths[i] {
			continue
		}
		for n, text := range Fill(cells[i], widths[i]) {
			if n == len(out) {
				out = append(out, make([]string, len(cells)))
			}
			if n == 0 {
				out[0] = slices.Clone(cells)
			}
			out[n][i] = text
		}
	}
	return out
}

// beforeUnit is the non-breaking space between a number and its unit.
var beforeUnit = regexp.MustCompile(`([0-9]) (B|[KMGT]iB|%)`)

// Fill breaks text into lines at spaces.
func Fill(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(beforeUnit.ReplaceAllString(text, "$1\x00$2")) {
		word = strings.ReplaceAll(word, "\x00", " ")
		if line != "" && textWidth(line)+1+textWidth(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// maxText is the maximum length of a line of sentences: longer ones are hard to
// read.
const maxText = 100

// paragraph writes a text about something, in lines that fit; about may be
// empty.
func paragraph(w io.Writer, width int, about, text string) {
	width = min(width, maxText)
	if about == "" {
		fmt.Fprintln(w, strings.Join(Fill(text, width), "\n"))
		return
	}
	rest := width - len(columnGap) // the first line is shorter by the word
	lines := Fill(strings.Repeat("x", textWidth(about))+" "+text, rest)
	_, lines[0], _ = strings.Cut(lines[0], " ")
	fmt.Fprintln(w, heading(about)+columnGap+strings.Join(lines, "\n"+columnGap))
}

// widths returns the widths of the columns. Stretching columns share the
// remaining width, the last of them taking what the others do not need.
func (t *table) widths(width int) []int {
	widths := make([]int, len(t.columns))
	stretching := 0
	for i, c := range t.columns {
		if widths[i] = t.width(i); c.stretch || c.wraps {
			stretching++
		} else {
			width -= widths[i]
		}
	}
	width -= len(columnGap) * (len(t.columns) - 1)
	for i := len(t.columns) - 1; i >= 0; i-- {
		if t.columns[i].stretch || t.columns[i].wraps {
			widths[i] = min(widths[i], max(width/stretching, minWidth))
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
		pad := strings.Repeat(" ", max(widths[i]-textWidth(c), 0))
		if t.columns[i].right {
			b.WriteString(pad + c)
		} else {
			b.WriteString(c + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// cutLeft shortens a code location: first folders, from the left, which are the
// least informative, and then the end of the function's name.
func cutLeft(s string, width int) string {
	rest := s
	for textWidth(s) > max(width, 0) {
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
