package evidence

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Row is a line of docs/accuracy.csv: how far off one quantity of one recording was.
type Row struct {
	Comparison   string  `json:"comparison"` // of what, and by which engine unless it was predicted
	Recording    string  `json:"recording"`
	Source       string  `json:"source"` // of what was measured
	Card         string  `json:"card"`
	PyTorch      string  `json:"pytorch"`
	Transformers string  `json:"transformers,omitempty"`
	Parameters   int64   `json:"parameters,omitempty"` // of the model, 0 if that is not known
	SignedError  float64 `json:"signed_error"`         // how much more was answered than measured, as a share of what was measured
}

var rowColumns = []string{"comparison", "recording", "source", "card", "pytorch", "transformers", "parameters", "signed_error"}

// WriteRows writes rows as CSV, below the names of their columns.
func WriteRows(w io.Writer, rows []Row) error {
	table := csv.NewWriter(w)
	_ = table.Write(rowColumns) // Flush remembers the error
	for _, r := range rows {
		_ = table.Write([]string{r.Comparison, r.Recording, r.Source, r.Card, r.PyTorch, r.Transformers, strconv.FormatInt(r.Parameters, 10), fmt.Sprintf("%.6f", r.SignedError)})
	}
	table.Flush()
	return table.Error()
}

// ReadRows reads what WriteRows wrote.
func ReadRows(r io.Reader) ([]Row, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 || !slices.Equal(lines[0], rowColumns) {
		return nil, fmt.Errorf("the first line must be the names of the columns: %v", rowColumns)
	}
	rows := make([]Row, 0, len(lines)-1)
	for i, cells := range lines[1:] {
		row := Row{Comparison: cells[0], Recording: cells[1], Source: cells[2], Card: cells[3], PyTorch: cells[4], Transformers: cells[5]}
		if row.Parameters, err = strconv.ParseInt(cells[6], 10, 64); err == nil {
			row.SignedError, err = strconv.ParseFloat(cells[7], 64)
		}
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Release is the first two numbers of a version: of "2.11.0+cu130", 2.11.
func Release(version string) string {
	numbers := strings.SplitN(version, ".", 3)
	return strings.Join(numbers[:min(len(numbers), 2)], ".")
}
