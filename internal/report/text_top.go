package report

import (
	"cmp"
	"fmt"
	"io"

	"memorymark/internal/figure"
	"memorymark/internal/recording"
)

// Top is the largest groups of live memory, for people: a table, each row with
// Frames frames of its stack; -1 for all.
type Top struct {
	*recording.Top
	Frames int
}

// Write writes the table.
func (t Top) Write(w io.Writer, width int) error {
	fmt.Fprintf(w, "%s, device %d\n%s live in %s %s\n\n", t.File, t.Device,
		heading(size(t.LiveBytes)), plural(t.LiveCount, "allocation"), atText(t.At, t.Event))
	tab := t.table()
	if t.Rest != nil {
		cells := make([]string, len(tab.columns))
		cells[0], cells[1], cells[2] = size(t.Rest.Bytes), figure.Count(t.Rest.Count), percent(t.Rest.Share)
		cells[3] = "the rest"
		tab.rows = append(tab.rows, row{cells: cells})
	}
	tab.write(w, width)
	return nil
}

func atText(at string, event int) string {
	switch {
	case event < 0:
		return "before the first event"
	case at == "oom":
		return fmt.Sprintf("when memory ran out (event %s)", figure.Count(event))
	case at == "peak" || at == "end":
		return fmt.Sprintf("at the %s (event %s)", at, figure.Count(event))
	default:
		return "at event " + figure.Count(event)
	}
}

func (t Top) table() *table {
	tab := &table{columns: []column{
		{title: "SIZE", right: true}, {title: "COUNT", right: true}, {title: "SHARE", right: true},
	}}
	switch t.By {
	case recording.BySize:
		tab.columns = append(tab.columns, column{title: "EACH", right: true})
	case recording.ByCategory:
		tab.columns = append(tab.columns, column{title: "CATEGORY"})
	case recording.ByMetadata:
		tab.columns = append(tab.columns, column{title: "METADATA", stretch: true})
	default:
		tab.columns = append(tab.columns, column{title: "CATEGORY"}, column{title: "MADE BY", stretch: true},
			column{title: "CALLED FROM", stretch: true})
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		cells := []string{size(g.Bytes), figure.Count(g.Count), percent(g.Share)}
		switch t.By {
		case recording.BySize:
			cells = append(cells, size(*g.EachBytes))
		case recording.ByCategory:
			cells = append(cells, categoryText(g.Category))
		case recording.ByMetadata:
			cells = append(cells, cmp.Or(g.Metadata, "none"))
		default:
			cells = append(cells, categoryText(g.Category), madeBy(&g.Place), calledFrom(&g.Place))
		}
		tab.rows = append(tab.rows, row{cells: cells, below: below(&g.Place, t.Frames), color: categoryColor(g.Category)})
	}
	return tab
}
