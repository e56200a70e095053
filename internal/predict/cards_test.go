package predict

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"memorymark/internal/workload/workloadtest"
)

// cardsFile has peaks of models in people's loops with PyTorch 2.6 and transformers
// 4.51, on emulated cards.
const cardsFile = "emulated-cards.jsonl"

// TestOtherCards holds predictions for other versions to other cards: what PyTorch
// itself allocates and reserves on an emulated one.
func TestOtherCards(t *testing.T) {
	byCardAllocated, byCardReserved := otherCards(t)
	allocated, reserved := together(byCardAllocated), together(byCardReserved)
	if e := allocated.sum(); e.Exact < e.Cases-4 || e.Worst > 0.0021 {
		t.Errorf("allocated is %+v, it was better; farthest are %s", e, allocated.farthest())
	}
	if e := reserved.sum(); e.Exact < e.Cases-1 || e.Worst > 0.0007 {
		t.Errorf("reserved is %+v, it was better; farthest are %s", e, reserved.farthest())
	}
}

// together are the errors on all cards.
func together(byCard map[string]lineErrors) lineErrors {
	return slices.Concat(slices.Collect(maps.Values(byCard))...)
}

// otherCards are the errors of the peaks, by card.
func otherCards(t *testing.T) (allocated, reserved map[string]lineErrors) {
	t.Helper()
	allocated, reserved = make(map[string]lineErrors), make(map[string]lineErrors)
	for _, line := range readLines[measuredPeaks](t, cardsFile) {
		w := workloadtest.Parse(t, line.Workload)
		card := workloadtest.Card(t, w.GPU)
		p := mustPredict(t, w, card)
		var a, r float64
		for i, s := range p.Steps {
			a = worse(a, int64(s.PeakAllocated), line.Measured.PeakAllocated[i])
			r = worse(r, int64(s.PeakReserved), line.Measured.PeakReserved[i])
		}
		allocated[card.ID] = append(allocated[card.ID], lineError{id: line.ID, share: a, parameters: p.Parameters})
		reserved[card.ID] = append(reserved[card.ID], lineError{id: line.ID, share: r, parameters: p.Parameters})
	}
	return allocated, reserved
}

const docCards = `
## Other versions on other cards

These are models of the sizes that people fine-tune (GPT-2, DistilGPT-2, Cerebras-GPT, T5, BERT, DistilRoBERTa, SmolLM, Qwen2.5), with PyTorch
2.6 and transformers 4.51, in loops that keep the output and drop gradients before the next pass, with four optimizers. They were not measured on
real cards. The predictions are compared with PyTorch on an emulated RTX 3060, RTX 4060 and A100 (` + "`emulated-cards.jsonl`" + `), three steps each.

| what | emulated | exact | median | 95 % within | from | to |
|---|--:|--:|--:|--:|--:|--:|
`

// writeCards compares predictions with emulated cards.
func (f *figures) writeCards(b *bytes.Buffer) {
	b.WriteString(docCards)
	for _, line := range []struct {
		what string
		e    lineErrors
	}{{"peak allocated", together(f.cardsAllocated)}, {"peak reserved", together(f.cardsReserved)}} {
		e := line.e.sum()
		fmt.Fprintf(b, "| %s | %d | %d | %s | %s | %s | %s |\n", line.what, e.Cases, e.Exact,
			percent(e.Median), percent(e.Percentile95), signedPercent(e.Lowest), signedPercent(e.Highest))
	}
}
