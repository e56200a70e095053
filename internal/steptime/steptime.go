// Package steptime estimates how long a training step takes on a card, from
// what the step asks of it: every launch, in its order.
package steptime

import "memorymark/internal/gpu"

// Work is what a step asks of a card and of the processor that feeds it.
type Work struct {
	Launches []Launch `json:"launches"` // that differ
	Order    []int    `json:"order"`    // in which they come, as indices of Launches
	Calls    int64    `json:"calls"`    // of PyTorch's functions, by Python
}

// Launch is a kernel, or something else that a card is told to do.
type Launch struct {
	Kind     Kind      `json:"kind"`
	Type     Type      `json:"type"`
	Backward bool      `json:"backward"`       // by autograd's thread, not by Python
	Size     []float64 `json:"size,omitempty"` // as its kind has it; what is missing is 0
}

// Kind is what a launch does, and what its sizes are.
type Kind string

// The kinds of launches.
const (
	Product     Kind = "product"     // of matrices: m, n, k, how many of them
	Convolution Kind = "convolution" // direction, batch, channels, filters, taps, input pixels, output pixels, groups
	Attention   Kind = "attention"   // operations, bytes
	Recurrent   Kind = "recurrent"   // gates, input, hidden, layers, directions, batch, steps, whether one step follows another
	Kernel      Kind = "kernel"      // bytes read and written: everything else
	Copy        Kind = "copy"        // bytes, between the host and the card
	Wait        Kind = "wait"        // of the host, for the card
)

// size is one of a launch's sizes.
func (l *Launch) size(i int) float64 {
	if i < len(l.Size) {
		return l.Size[i]
	}
	return 0
}

// Empty reports whether nothing is known of a step.
func (w *Work) Empty() bool { return w == nil || len(w.Order) == 0 }

// Seconds estimates how long the step takes, from an idle card to an idle
// card: the host launches one kernel after the other, the card runs them one
// after the other. It is 0 where the work or the card's rates are not known.
func (w *Work) Seconds(card *gpu.Card) float64 { return w.seconds(card, &fitted) }

func (w *Work) seconds(card *gpu.Card, m *model) float64 {
	if w.Empty() || card.DenseTFLOPS.FP32 == 0 || card.BandwidthGBPerS == 0 {
		return 0
	}
	d := device{card, m}
	seconds := make([]float64, len(w.Launches))
	for i := range w.Launches {
		seconds[i] = d.seconds(&w.Launches[i])
	}
	python := m.launch + m.call*w.callsPerLaunch()
	host, device := 0., 0.
	for _, i := range w.Order {
		l := &w.Launches[i]
		if l.Kind == Wait {
			host = max(host, device)
			continue
		}
		if l.Backward {
			host += m.backward
		} else {
			host += python
		}
		device = max(device, host) + seconds[i]
	}
	return max(host, device)
}

// callsPerLaunch spreads Python's calls evenly over its launches.
func (w *Work) callsPerLaunch() float64 {
	launches := 0
	for _, i := range w.Order {
		if l := &w.Launches[i]; !l.Backward && l.Kind != Wait {
			launches++
		}
	}
	return float64(w.Calls) / float64(max(launches, 1))
}
