package report

import (
	"fmt"
	"io"
	"strconv"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/workload"
)

// OnCards is how a workload does on the cards of the catalog.
type OnCards struct {
	Workload *workload.Workload `json:"workload"`
	Cards    []analysis.OnCard  `json:"gpus"`
}

// Write lists the cards for people.
func (o *OnCards) Write(w io.Writer, width int) error {
	t := table{columns: []column{
		{title: "CARD"},
		{title: "MEMORY", right: true},
		{title: fmt.Sprintf("BATCH %d", o.Workload.Batch)},
		{title: "LARGEST", right: true},
		{title: "WORTH USING", right: true, spare: 1},
		{title: "SAMPLES/S", right: true, spare: 2},
		{title: "$ A MILLION", right: true, spare: 3},
	}}
	fitting := 0
	for _, c := range o.Cards {
		trains := "does not fit"
		if c.Fits {
			trains = "trains"
			fitting++
		}
		cells := []string{c.GPU, bytesize.Bytes(c.Total).String(), trains, strconv.FormatInt(c.OptimalBatch, 10), "", "", ""}
		if c.OptimalBatch > 0 {
			cells[4], cells[5] = strconv.FormatInt(c.Recommended, 10), rate(c.SamplesPerSecond)
			if c.PricePerMillion > 0 {
				cells[6] = fmt.Sprintf("%.2f", c.PricePerMillion)
			}
		}
		t.rows = append(t.rows, row{cells: cells})
	}
	fmt.Fprintf(w, "%s trains at batch %s on %s of %s, predicted\n\n", heading(o.Workload.Name()), figure.Count(int(o.Workload.Batch)),
		figure.Count(fitting), plural(len(o.Cards), "card"))
	t.write(w, width)
	return nil
}
