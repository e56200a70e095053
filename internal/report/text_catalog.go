package report

import (
	"fmt"
	"io"
	"strconv"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Models is the catalog of models.
type Models struct {
	Models []*workload.CatalogModel `json:"models"`
}

// Write lists the models for people.
func (m *Models) Write(w io.Writer, width int) error {
	t := table{columns: []column{{title: "ID"}, {title: "NAME", spare: 1}, {title: "WHAT", wraps: true}, {title: "HUGGING FACE", spare: 2}}}
	for _, x := range m.Models {
		t.rows = append(t.rows, row{cells: []string{x.ID, x.Name, x.Description, x.HuggingFaceID}})
	}
	t.write(w, width)
	return nil
}

// CardsText is the catalog of cards.
type CardsText struct {
	Cards []*gpu.Card `json:"gpus"`
}

// Write lists the cards for people.
func (c *CardsText) Write(w io.Writer, width int) error {
	t := table{columns: []column{
		{title: "ID"},
		{title: "NAME"},
		{title: "MEMORY", right: true},
		{title: "CAPABILITY", right: true, spare: 3},
		{title: "GB/S", right: true, spare: 2},
		{title: "FP32", right: true, spare: 1},
		{title: "TF32", right: true, spare: 1},
		{title: "BF16", right: true},
		{title: "$/HOUR", right: true},
		{title: "WHERE, WHEN", spare: 4},
	}}
	estimated := false
	for _, x := range c.Cards {
		memory := size(int64(x.Memory.Bytes))
		if x.Memory.Estimated {
			memory, estimated = "~"+memory, true
		}
		price, where := "", ""
		if x.Price != nil {
			price, where = fmt.Sprintf("%.2f", x.Price.USDPerHour), x.Price.Provider+", "+x.Price.AsOf
		}
		r := x.DenseTFLOPS
		t.rows = append(t.rows, row{cells: []string{
			x.ID, x.Name, memory, x.ComputeCapability.String(), rate(x.BandwidthGBPerS), rate(r.FP32), rate(r.TF32), rate(r.BF16), price, where,
		}})
	}
	t.write(w, width)
	notes := []string{"Memory as PyTorch reports it; rates in dense TFLOPS from data sheets. --json has every source."}
	if estimated {
		notes = append(notes, "~ is estimated: no published figure was found.")
	}
	writeFaint(w, width, notes)
	return nil
}

// rate writes a figure of a data sheet, nothing for none.
func rate(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
