package report

import (
	"fmt"
	"io"
	"strings"

	"memorymark/internal/check"
)

// Budgets says, for people, whether workloads are within their budgets.
type Budgets struct {
	Verdicts []check.BudgetVerdict `json:"workloads"`
}

// maxGrown is how many grown locations are listed.
const maxGrown = 8

// Failed is how many exceed their budgets.
func (c Budgets) Failed() int {
	n := 0
	for i := range c.Verdicts {
		if c.Verdicts[i].Reason != "" {
			n++
		}
	}
	return n
}

// Write writes a table of the workloads, and what grew.
func (c Budgets) Write(w io.Writer, width int) error {
	fmt.Fprintf(w, "%s\n\n", heading(c.verdict()))
	t := table{columns: []column{
		{title: "WORKLOAD"},
		{title: "ENGINE"},
		{title: "ALLOCATED", right: true},
		{title: "BEFORE", right: true},
		{title: "RESERVED", right: true},
		{title: "MAY TAKE", right: true},
		{title: "", wraps: true},
	}}
	for i := range c.Verdicts {
		t.rows = append(t.rows, row{cells: cellsOf(&c.Verdicts[i])})
	}
	t.write(w, width)
	for i := range c.Verdicts {
		writeGrown(w, width, &c.Verdicts[i])
	}
	return nil
}

func (c Budgets) verdict() string {
	if n := c.Failed(); n > 0 {
		return fmt.Sprintf("%d of %s over budget", n, plural(len(c.Verdicts), "workload"))
	}
	return plural(len(c.Verdicts), "workload") + " within budget"
}

func cellsOf(v *check.BudgetVerdict) []string {
	before, most, verdict := "", "", "ok"
	if v.Before != nil {
		before = v.Before.String()
	}
	if v.Max > 0 {
		most = v.Max.String()
	} else if v.Limit > 0 {
		most = v.Limit.String()
	}
	if v.Reason != "" {
		verdict = v.Reason
	}
	allocated, reserved := "", ""
	if v.Fits {
		allocated, reserved = v.Allocated.String(), v.Reserved.String()
	}
	return []string{v.Name, string(v.Engine), allocated, before, reserved, most, verdict}
}

func writeGrown(w io.Writer, width int, v *check.BudgetVerdict) {
	if len(v.Grown) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s at the peak, against the baseline\n", heading(v.Name))
	t := table{columns: []column{{title: "CHANGE", right: true}, {title: "NOW", right: true}, {title: "FOR"}, {title: "WHERE", stretch: true}}}
	for _, g := range v.Grown[:min(len(v.Grown), maxGrown)] {
		t.rows = append(t.rows, row{cells: []string{signed(int64(g.By)), g.Bytes.String(), strings.ReplaceAll(g.For, "_", " "), g.Where}})
	}
	t.write(w, width)
	if n := len(v.Grown) - maxGrown; n > 0 {
		fmt.Fprintf(w, "  and %s\n", plural(n, "other place"))
	}
}

// WriteMarkdown writes the same for a pull request.
func (c Budgets) WriteMarkdown(w io.Writer) error {
	fmt.Fprintf(w, "### GPU memory: %s\n\n", c.verdict())
	fmt.Fprintln(w, "| | workload | engine | allocated | before | reserved | may take |")
	fmt.Fprintln(w, "|---|---|---|--:|--:|--:|--:|")
	for i := range c.Verdicts {
		v, mark := &c.Verdicts[i], "✅"
		if v.Reason != "" {
			mark = "❌ " + v.Reason
		}
		cells := cellsOf(v)
		fmt.Fprintf(w, "| %s | %s |\n", mark, strings.Join(cells[:len(cells)-1], " | "))
	}
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		if len(v.Grown) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n<details><summary>What changed in %s</summary>\n\n| change | now | for | where |\n|--:|--:|---|---|\n", v.Name)
		for _, g := range v.Grown[:min(len(v.Grown), maxGrown)] {
			fmt.Fprintf(w, "| %s | %s | %s | `%s` |\n", signed(int64(g.By)), g.Bytes, strings.ReplaceAll(g.For, "_", " "), g.Where)
		}
		fmt.Fprintln(w, "\n</details>")
	}
	return nil
}
