package predict

import (
	"bytes"
	"encoding/csv"
	"fmt"
)

// accuracyTable has every comparison, for those who check or plot them: a row each.
const accuracyTable = "../../docs/accuracy.csv"

// table writes the comparisons as CSV. An error is signed: how much more was predicted
// than measured, as a share of what was measured.
func (f *figures) table() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"comparison", "recording", "source", "card", "pytorch", "transformers", "parameters", "signed_error"}) // into memory
	for _, c := range []struct {
		name, source, card string
		errors             lineErrors
	}{
		{"peak allocated", "peaks", "h200", f.allocated},
		{"peak reserved", "peaks", "h200", f.reserved},
		{"peak allocated, held out", "peaks-heldout", "h200", f.heldAllocated},
		{"peak reserved, held out", "peaks-heldout", "h200", f.heldReserved},
		{"peak allocated, random", "peaks-random", "h200", f.drawnAllocated},
		{"peak reserved, random", "peaks-random", "h200", f.drawnReserved},
		{"peak allocated, study", "study", "h200", f.studied.allocated},
		{"peak reserved, study", "study", "h200", f.studied.reserved},
		{"largest batch", "largest-batch", "h200", f.largest},
		{"step time", "throughput", "h200", f.time},
		{"step time, study", "study", "h200", f.studiedTime},
		{"peak allocated, other cards, emulated", "cards", "of the recording", f.cardsAllocated},
		{"peak reserved, other cards, emulated", "cards", "of the recording", f.cardsReserved},
	} {
		for _, e := range c.errors.sorted() {
			_ = w.Write([]string{c.name, e.id, "testdata/truth/" + c.source, c.card, PyTorchVersion, TransformersVersion, fmt.Sprint(e.parameters), fmt.Sprintf("%.6f", e.share)})
		}
	}
	w.Flush()
	return b.Bytes()
}
