package engine

import (
	"memorymark/internal/evidence"
	"memorymark/internal/workload"
)

// Means are what questions can be answered with in addition to predictions.
type Means struct {
	Card      bool // the card that is asked about, or a device that was named
	Emulation bool // of any card
	Device    bool // some device that PyTorch runs steps on, as a Mac's GPU
}

// Choose decides which engine answers what is asked of a workload: the one that was
// asked for, or for Auto the card itself if it is there, else a prediction of what is
// modelled, else whatever runs steps. What only predictions know is predicted: one GPU
// cannot measure a rank of many, and the batches of the prober are all alike. Where
// nothing can answer, predicting says why.
func Choose(asked evidence.Engine, w *workload.Workload, modelled bool, has Means) evidence.Engine {
	switch {
	case asked != evidence.Auto && asked != "":
		return asked
	case modelled && (w.Parallel != nil || w.Lengths != nil):
		return evidence.Predicted
	case has.Card:
		return evidence.Measured
	case modelled:
		return evidence.Predicted
	case has.Emulation:
		return evidence.Emulated
	case has.Device:
		return evidence.Measured
	default:
		return evidence.Predicted
	}
}
