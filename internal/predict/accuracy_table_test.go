package predict

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"memorymark/internal/evidence"
)

const (
	// accuracyTable has every comparison, for those who check or plot them: a row each.
	accuracyTable = "../../docs/accuracy.csv"
	// reportedTable has the rows that memorymark report-accuracy wrote on other people's cards.
	reportedTable = truthDir + "/reported.csv"

	cardsSource    = "testdata/truth/emulated-cards"
	networksSource = "internal/steptime/testdata/kernels/networks"
)

// compared are comparisons of one kind, with one source and card.
type compared struct {
	what, source, card string
	errors             lineErrors
}

// comparisons are all that is compared with the truth, and with what others published.
func (f *figures) comparisons() []compared {
	all := []compared{
		{"peak allocated", "testdata/truth/peaks", "h200", f.allocated},
		{"peak reserved", "testdata/truth/peaks", "h200", f.reserved},
		{"peak allocated, held out", "testdata/truth/peaks-heldout", "h200", f.heldAllocated},
		{"peak reserved, held out", "testdata/truth/peaks-heldout", "h200", f.heldReserved},
		{"peak allocated, any keys", "testdata/truth/peaks-drawn", "h200", f.drawnAllocated},
		{"peak reserved, any keys", "testdata/truth/peaks-drawn", "h200", f.drawnReserved},
		{"peak allocated, memory study", "testdata/truth/study", "h200", f.studied.allocated},
		{"peak reserved, memory study", "testdata/truth/study", "h200", f.studied.reserved},
		{"largest batch", "testdata/truth/largest-batch", "h200", f.largest},
		{"step time", "testdata/truth/throughput", "h200", f.time},
		{"step time, memory study", "testdata/truth/study", "h200", f.studiedTime},
		{"step time, large bf16 products", "testdata/truth/throughput-large", "h200", f.largeTime},
		{"step time, profiled", "internal/steptime/testdata/kernels/steps", "h200", f.profiledTime},
		{"step time, emulated", "internal/steptime/testdata/timed", "h200", f.emulatedPlain},
		{"step time, user-written models, emulated", "internal/steptime/testdata/timed", "h200", f.emulatedOwn},
	}
	for _, card := range slices.Sorted(maps.Keys(f.cardsAllocated)) {
		all = append(all, compared{"peak allocated, other cards, emulated", cardsSource, card, f.cardsAllocated[card]},
			compared{"peak reserved, other cards, emulated", cardsSource, card, f.cardsReserved[card]})
	}
	for _, card := range slices.Sorted(maps.Keys(f.cards)) {
		all = append(all, compared{"forward time of networks", networksSource, card, f.cards[card]})
	}
	for _, set := range engineSets {
		for _, engine := range []struct {
			name string
			of   func(*engineLine) *enginePeak
		}{
			{"predicted", func(x *engineLine) *enginePeak { return x.Predicted }},
			{"emulated", func(x *engineLine) *enginePeak { return x.Emulated }},
		} {
			if set.name == "plain" && engine.name == "predicted" {
				continue // those of the peaks, which are predicted again
			}
			allocated, reserved, _ := f.engineErrors(set.name, engine.of)
			all = append(all, compared{"peak allocated, " + set.title + ", " + engine.name, "testdata/truth/engines", "h200", allocated},
				compared{"peak reserved, " + set.title + ", " + engine.name, "testdata/truth/engines", "h200", reserved})
		}
	}
	return all
}

// versions are those that were measured, as far as they are known.
func (c *compared) versions() (pytorch, transformers string) {
	switch c.source {
	case cardsSource:
		return "2.6", "4.51"
	case networksSource:
		return "", ""
	}
	return PyTorchVersion, TransformersVersion
}

// table writes the comparisons as CSV. An error is signed: how much more was predicted
// than measured, as a share of what was measured.
func (f *figures) table() []byte {
	var rows []evidence.Row
	for _, c := range f.comparisons() {
		pytorch, transformers := c.versions()
		for _, e := range c.errors.sorted() {
			rows = append(rows, evidence.Row{
				Comparison: c.what, Recording: e.id, Source: c.source, Card: c.card, PyTorch: pytorch,
				Transformers: transformers, Parameters: e.parameters, SignedError: e.share,
			})
		}
	}
	var b bytes.Buffer
	_ = evidence.WriteRows(&b, append(rows, f.reported...)) // into memory
	return b.Bytes()
}

// reportedRows are what users reported of their cards.
func reportedRows(t *testing.T) []evidence.Row {
	t.Helper()
	file, err := os.Open(reportedTable)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := evidence.ReadRows(file)
	if err != nil {
		t.Fatalf("%s: %v", reportedTable, err)
	}
	return rows
}

const docReported = `
## Reported

` + "`memorymark report-accuracy`" + ` makes rows like these of a run on your card ([how](guide/report-accuracy.md)). Each says with which version of
MemoryMark it was made; later ones may be nearer.

| what | card | reported | exact | median | from | to |
|---|---|--:|--:|--:|--:|--:|
`

// writeReported sums up what users reported, by quantity and card.
func (f *figures) writeReported(b *bytes.Buffer) {
	type kind struct{ what, card string }
	var kinds []kind
	of := make(map[kind]lineErrors)
	for _, r := range f.reported {
		k := kind{r.Comparison, r.Card}
		if of[k] == nil {
			kinds = append(kinds, k)
		}
		of[k] = append(of[k], lineError{id: r.Recording, share: r.SignedError, parameters: r.Parameters})
	}
	b.WriteString(docReported)
	for _, k := range kinds {
		e := of[k].sum()
		fmt.Fprintf(b, "| %s | %s | %d | %d | %s | %s | %s |\n", k.what, k.card, e.Cases, e.Exact, percent(e.Median), signedPercent(e.Lowest), signedPercent(e.Highest))
	}
}
