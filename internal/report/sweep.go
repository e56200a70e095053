package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/study"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// Sweep is the results of a grid, for people.
type Sweep struct{ *study.Sweep }

// sweepColumn is a column of a sweep's table: as people read it, and as
// programs do.
type sweepColumn struct {
	title, name string // name is the one in CSV
	number      bool
	wraps       bool
	spare       int // as a column's
	text        func(*study.SweepCell) string
	raw         func(*study.SweepCell) string // nil is as people read it
}

// columns are the varied keys and then what was found.
func (s Sweep) columns() []sweepColumn {
	axes := s.Varied()
	if len(axes) == 0 {
		axes = []study.Axis{{Key: "model"}}
	}
	var out []sweepColumn
	for _, a := range axes {
		out = append(out, sweepColumn{
			title: strings.ToUpper(axisName(a.Key)), name: a.Key, number: isNumber(a.Key),
			text: func(c *study.SweepCell) string { return axisText(a.Key, valueOf(c, a.Key)) },
			raw:  func(c *study.SweepCell) string { return valueOf(c, a.Key) },
		})
	}
	out = append(out,
		bytesColumn("ALLOCATED", "peak_allocated_bytes", func(c *study.SweepCell) bytesize.Bytes { return peakOf(c.Result).Allocated }),
		bytesColumn("RESERVED", "peak_reserved_bytes", func(c *study.SweepCell) bytesize.Bytes { return peakOf(c.Result).Reserved }),
		sweepColumn{title: "PEAK IN", spare: 2, name: "peak_phase", text: func(c *study.SweepCell) string { return peakOf(c.Result).Phase }},
	)
	for _, phase := range []string{trace.ForwardMark, trace.BackwardMark, trace.OptimizerMark} {
		column := bytesColumn(strings.ToUpper(phase), phase+"_peak_allocated_bytes", func(c *study.SweepCell) bytesize.Bytes {
			if p := c.Phase(phase); p != nil {
				return p.Allocated
			}
			return 0
		})
		column.spare = 3
		out = append(out, column)
	}
	return append(out,
		sweepColumn{title: "STEP", name: "step_seconds", number: true, spare: 1, text: stepText, raw: stepRaw},
		sweepColumn{title: "", name: "status", wraps: true, text: status},
	)
}

func bytesColumn(title, name string, of func(*study.SweepCell) bytesize.Bytes) sweepColumn {
	show := func(write func(bytesize.Bytes) string) func(*study.SweepCell) string {
		return func(c *study.SweepCell) string {
			if b := of(c); b > 0 {
				return write(b)
			}
			return ""
		}
	}
	return sweepColumn{
		title: title, name: name, number: true, text: show(bytesize.Bytes.String),
		raw: show(func(b bytesize.Bytes) string { return strconv.FormatInt(int64(b), 10) }),
	}
}

// valueOf is what a key is in a cell, whether it is varied or not.
func valueOf(c *study.SweepCell, key string) string {
	if v, ok := c.Values[key]; ok || c.Workload == nil {
		return v
	}
	return c.Workload.Name() // only the model is asked for otherwise
}

func peakOf(r *study.Result) study.Peak {
	if r.Peak == nil {
		return study.Peak{}
	}
	return *r.Peak
}

func stepText(c *study.SweepCell) string {
	if c.StepSeconds == nil {
		return ""
	}
	return seconds(*c.StepSeconds)
}

func stepRaw(c *study.SweepCell) string {
	if c.StepSeconds == nil {
		return ""
	}
	return strconv.FormatFloat(*c.StepSeconds, 'f', -1, 64)
}

func status(c *study.SweepCell) string {
	switch {
	case c.Error != "":
		return c.Error
	case c.OutOfMemory != nil && c.OutOfMemory.Needs > 0:
		return fmt.Sprintf("does not fit: %v of %v", c.OutOfMemory.Needs, c.OutOfMemory.Limit)
	case c.OutOfMemory != nil:
		return "does not fit"
	default:
		return ""
	}
}

// axisName is what people call a key.
func axisName(key string) string {
	names := map[string]string{"sequence": "context", "phase": "type"}
	if name, ok := names[key]; ok {
		return name
	}
	return strings.ReplaceAll(key, "_", " ")
}

// axisText is what people call a value.
func axisText(key, value string) string {
	switch key {
	case "model":
		return study.SizeOf(value)
	case "phase":
		return study.ProfileType(workload.Phase(value))
	default:
		return value
	}
}

func isNumber(key string) bool {
	return key == "batch" || key == "sequence" || key == "image" || key == "accumulate" || key == "limit_gib"
}

// Write writes the table for people.
func (s Sweep) Write(w io.Writer, width int) error {
	paragraph(w, width, plural(len(s.Cells), "cell"), s.constants())
	paragraph(w, width, "", s.evidence())
	fmt.Fprintln(w)
	s.table().write(w, width)
	return nil
}

func (s Sweep) table() *table {
	t := &table{}
	columns := s.columns()
	for _, c := range columns {
		t.columns = append(t.columns, column{title: c.title, right: c.number, wraps: c.wraps, spare: c.spare})
	}
	for i := range s.Cells {
		cells := make([]string, len(columns))
		for j, c := range columns {
			cells[j] = c.text(&s.Cells[i])
		}
		t.rows = append(t.rows, row{cells: cells})
	}
	return t
}

// constants names what all cells have in common.
func (s Sweep) constants() string {
	var parts []string
	for _, a := range s.Axes {
		if len(a.Values) == 1 {
			parts = append(parts, axisName(a.Key)+" "+axisText(a.Key, a.Values[0]))
		}
	}
	return strings.Join(parts, ", ")
}

// evidence is what the cells rest on, as far as it is the same for all.
func (s Sweep) evidence() string {
	var origins, accuracies []string
	sameCard := !slices.ContainsFunc(s.Varied(), func(a study.Axis) bool { return a.Key == "gpu" })
	for i := range s.Cells {
		if r := s.Cells[i].Result; r.Provenance != nil {
			origins = append(origins, origin(r, sameCard))
			accuracies = append(accuracies, accuracy(r))
		}
	}
	if len(origins) == 0 {
		return "no cell could be profiled"
	}
	if accuracies = slices.Compact(accuracies); len(accuracies) > 1 {
		accuracies = nil
	}
	return strings.Join(nonEmpty(append(slices.Compact(origins)[:1], accuracies...)...), "; ")
}

// WriteMarkdown writes the table as Markdown.
func (s Sweep) WriteMarkdown(w io.Writer) error {
	columns := s.columns()
	cells := make([]string, len(columns))
	rule := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = strings.ToLower(c.title)
		if rule[i] = "---"; c.number {
			rule[i] = "--:"
		}
	}
	fmt.Fprintf(w, "%s; %s.\n\n", s.constants(), s.evidence())
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(cells)
	line(rule)
	for i := range s.Cells {
		for j, c := range columns {
			cells[j] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(c.text(&s.Cells[i]))
		}
		line(cells)
	}
	return nil
}

// WriteCSV writes the table for programs: in bytes and seconds.
func (s Sweep) WriteCSV(w io.Writer) error {
	columns := s.columns()
	out := csv.NewWriter(w)
	cells := make([]string, len(columns)+2)
	for i, c := range columns {
		cells[i] = c.name
	}
	cells[len(columns)], cells[len(columns)+1] = "engine", "gpu"
	if err := out.Write(cells); err != nil {
		return err
	}
	for i := range s.Cells {
		cell := &s.Cells[i]
		for j, c := range columns {
			if cells[j] = c.text(cell); c.raw != nil {
				cells[j] = c.raw(cell)
			}
		}
		cells[len(columns)], cells[len(columns)+1] = string(cell.Engine), ""
		if cell.Provenance != nil {
			cells[len(columns)+1] = cell.Provenance.GPU
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
