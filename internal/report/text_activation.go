package report

import (
	"fmt"
	"io"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/study"
)

// Activation writes the derivation of a model's activations.
type Activation struct{ *study.Activation }

// Write writes it step by step: one tensor, the block, all layers, the peak.
func (a Activation) Write(w io.Writer, width int) error {
	fmt.Fprintf(w, "%s\n\n", heading(fmt.Sprintf("Activations of %s in fp32", a.Model)))
	for _, s := range a.Symbols {
		fmt.Fprintf(w, "  %s = %-5d %s\n", s.Symbol, s.Value, s.Name)
	}
	writeProduct(w, "One tensor of the residual stream", a.Residual)
	writeProduct(w, "The attention scores of one layer", a.Scores)
	fmt.Fprintf(w, "  %.3g times a tensor of the residual stream: H × S / D\n", float64(a.Scores.Bytes)/float64(a.Residual.Bytes))
	a.writeBlock(w, width)
	a.writeLayers(w)
	return nil
}

func writeProduct(w io.Writer, title string, p study.Product) {
	fmt.Fprintf(w, "\n%s\n    %s\n  = %s\n  = %s bytes\n  = %v\n", heading(title), p.Symbols, p.Numbers, figure.Count(int(p.Bytes)), p.Bytes)
}

func (a Activation) writeBlock(w io.Writer, width int) {
	fmt.Fprintf(w, "\n%s\n", heading("Everything that one block makes in forward, in order"))
	a.blockTable().write(w, width)
	fmt.Fprintf(w, "\n  %s\n", a.blockTotal())
}

func (a Activation) blockTotal() string {
	return fmt.Sprintf("saved for backward %v, as much as %.1f tensors of the residual stream; freed before forward ends %v",
		a.Saved, float64(a.Saved)/float64(a.Residual.Bytes), a.Freed)
}

func (a Activation) blockTable() *table {
	t := &table{columns: []column{
		{title: "TENSOR"}, {title: "SHAPE"}, {title: "IN NUMBERS", spare: 1}, {title: "SIZE", right: true}, {title: "BACKWARD"}, {title: "WHY", wraps: true},
	}}
	for _, v := range a.Block {
		numbers := make([]string, len(v.Sizes))
		for i, n := range v.Sizes {
			numbers[i] = fmt.Sprint(n)
		}
		state := "freed"
		if v.Saved {
			state = "saved"
		}
		t.rows = append(t.rows, row{cells: []string{v.What, v.Shape, strings.Join(numbers, " × "), v.Bytes.String(), state, v.Reason}})
	}
	return t
}

// writeLayers goes from the block to the peak.
func (a Activation) writeLayers(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", heading("All of it"))
	for _, l := range a.layers() {
		fmt.Fprintf(w, "  %10v  %s\n", l.amount, l.text)
	}
	fmt.Fprintf(w, "\n%s\n", a.source())
}

func (a Activation) source() string {
	return fmt.Sprintf("%s, for %s.", capital(string(a.Engine)), deviceText(a.GPU))
}

// activationLine is a step from the block to the peak.
type activationLine struct {
	amount bytesize.Bytes
	text   string
}

func (a Activation) layers() []activationLine {
	layers := a.Symbols[len(a.Symbols)-1].Value
	share := func(of bytesize.Bytes) string { return percent(float64(a.Kept) / float64(of)) }
	return []activationLine{
		{a.Blocks, fmt.Sprintf("%v × %d layers", a.Saved, layers)},
		{a.Outside, "outside the blocks: embedding, rotary positions, final norm, loss"},
		{a.Kept, "kept for backward when forward ends, by the prediction"},
		{a.BackwardPeak, fmt.Sprintf("peak of forward and backward; activations are %s of it", share(a.BackwardPeak))},
		{a.Peak, fmt.Sprintf("peak of the step, in %s; activations would be %s of it", a.PeakPhase, share(a.Peak))},
	}
}

// capital makes a word begin a sentence.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
