package evidence

import (
	"fmt"
	"strings"
)

// What emulations were held against: programs that ran on a real card, run
// again on an emulated one (docs/how-emulation-works.md, whose table a test
// is checked against these).
const (
	// EmulatedGPU is called as in the catalog of cards.
	EmulatedGPU     = "NVIDIA H200 SXM"
	EmulatedPyTorch = "2.11"
)

// Held is how emulations of one kind of program compare with the real card: the
// peaks of the third step.
type Held struct {
	What      string // of the processes
	Processes int
	Exact     int    // allocated, to the byte
	Most95    string // 95 % of allocated peaks are within it
	Worst     string // of allocated peaks
	Reserved  int    // exact, to the byte
}

// Emulations are the kinds of programs that were tried.
var Emulations = []Held{
	{"user-written models", 86, 76, "0.046 %", "0.72 %", 82},
	{"Hugging Face's Trainer, Lightning, Accelerate's loop", 22, 21, "0", "0.22 %", 22},
	{"one rank of a multi-GPU job", 51, 47, "0.062 %", "0.59 %", 47},
}

// EmulationAccuracy says how far off emulations were, and in what a card or a
// version is another than those that were tried.
func EmulationAccuracy(card, pytorch string) []string {
	h := Emulations[0]
	out := []string{fmt.Sprintf("Emulation was checked against %d processes of %s, measured on an %s with PyTorch %s: allocated memory is exact for %d, within %s for 95 %% and at worst %s off; reserved memory is exact for %d.",
		h.Processes, h.What, EmulatedGPU, EmulatedPyTorch, h.Exact, h.Most95, h.Worst, h.Reserved)}
	other := ""
	if card != EmulatedGPU {
		other += " on the " + card
	}
	if pytorch != EmulatedPyTorch && !strings.HasPrefix(pytorch, EmulatedPyTorch+".") {
		other += " with PyTorch " + pytorch
	}
	if other != "" {
		out = append(out, "Accuracy"+other+" has not been measured.")
	}
	return out
}
