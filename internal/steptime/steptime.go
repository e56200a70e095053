// Package steptime estimates how long a training step takes on a card, from
// what the step asks of it: every launch, in its order. A kind of launch has a
// physical form, bytes and operations and rounds on the multiprocessors, and
// constants that were fitted to kernels timed on an H200 and, for other cards,
// to those that others timed (testdata/kernels).
package steptime

import (
	"math"

	"memorymark/internal/gpu"
)

// Work is what a step asks of a card and of the processor that feeds it.
type Work struct {
	Launches []Asked `json:"launches"` // that differ
	Order    []int   `json:"order"`    // in which they come, as indices of Launches
	Calls    int64   `json:"calls"`    // of PyTorch's functions, by Python
}

// Asked is a launch as a prober writes it.
type Asked struct {
	Kind     Kind      `json:"kind"`
	Type     Type      `json:"type"`
	Backward bool      `json:"backward"`
	Size     []float64 `json:"size,omitempty"` // what is missing is 0
}

func (a *Asked) launch() *Launch {
	l := &Launch{Kind: a.Kind, Type: a.Type, Backward: a.Backward}
	copy(l.Size[:], a.Size)
	return l
}

// Empty reports whether nothing is known of a step.
func (w *Work) Empty() bool { return w == nil || len(w.Order) == 0 }

// Seconds estimates how long the step takes, from an idle card to an idle
// card: the host launches one kernel after the other, the card runs them one
// after the other. It is 0 where the work or the card's rates are not known.
func (w *Work) Seconds(card *gpu.Card) float64 { return w.seconds(card, expected) }

// Range is where the truth lies.
func (w *Work) Range(card *gpu.Card) Range {
	return Range{w.seconds(card, least), w.seconds(card, most)}
}

func (w *Work) seconds(card *gpu.Card, e end) float64 {
	if w.Empty() || !Known(card) {
		return 0
	}
	d := newDevice(card)
	seconds := make([]float64, len(w.Launches))
	for i := range w.Launches {
		l := w.Launches[i].launch()
		seconds[i] = between + e.device(d.seconds(l), d.off(l))
	}
	backward, python := e.host(hostOfBackward), e.host(hostOfCounted+hostOfCall*w.callsPerLaunch())
	host, device := 0., 0.
	for _, i := range w.Order {
		l := &w.Launches[i]
		if l.Kind == Wait {
			host = max(host, device)
			continue
		}
		if l.Backward {
			host += backward
		} else {
			host += python
		}
		device = max(device, host) + seconds[i]
	}
	return max(host, device)
}

// Known reports whether a card has the figures that an estimate needs.
func Known(card *gpu.Card) bool { return card.DenseTFLOPS.FP32 > 0 && card.BandwidthGBPerS > 0 }

// callsPerLaunch spreads Python's calls evenly over its launches.
func (w *Work) callsPerLaunch() float64 {
	return float64(w.Calls) / float64(max(w.byPython(), 1))
}

// byPython is how many launches Python makes.
func (w *Work) byPython() (launches int) {
	for _, i := range w.Order {
		if l := &w.Launches[i]; !l.Backward && l.Kind != Wait {
			launches++
		}
	}
	return launches
}

// Split parts the work of a step into that of its passes, forward and backward, and that
// of the update after them.
func (w *Work) Split() (passes, update *Work) {
	if w.Empty() {
		return nil, nil
	}
	last := len(w.Order) - 1
	for last >= 0 && !w.Launches[w.Order[last]].Backward {
		last--
	}
	calls := w.callsPerLaunch()
	part := func(order []int) *Work {
		out := &Work{Launches: w.Launches, Order: order}
		out.Calls = int64(calls * float64(out.byPython()))
		return out
	}
	return part(w.Order[:last+1]), part(w.Order[last+1:])
}

// Busy is how long a part of a step keeps the card and its host, and how many seconds
// the card's may be off.
type Busy struct{ Device, Host, Off float64 }

// Times is several such parts.
func (b Busy) Times(n float64) Busy { return Busy{n * b.Device, n * b.Host, n * b.Off} }

// Plus is both parts.
func (b Busy) Plus(other Busy) Busy {
	return Busy{b.Device + other.Device, b.Host + other.Host, b.Off + other.Off}
}

// at is the part at an end of the range.
func (b Busy) at(e end) Busy {
	if b.Device > 0 {
		b.Device = e.device(b.Device, b.Off/b.Device)
	}
	b.Host = e.host(b.Host)
	return b
}

// Busy estimates how long launches, and the nodes that autograd's thread runs, keep a
// card and its host, each by itself.
func (l Launches) Busy(card *gpu.Card, nodes float64) Busy {
	return l.busy(card, l.hostOf(nodes))
}

// BusyUpdating is that of launches of an optimizer.
func (l Launches) BusyUpdating(card *gpu.Card) Busy { return l.busy(card, l.hostOfOptimizer()) }

func (l Launches) busy(card *gpu.Card, host float64) (out Busy) {
	if !Known(card) {
		return out
	}
	d := newDevice(card)
	out.Host = host
	for _, c := range l.Distinct() {
		seconds := c.Count * (d.seconds(&c.Launch) + between)
		out.Device += seconds
		out.Off += seconds * d.off(&c.Launch)
	}
	return out
}

// Seconds is how long parts of a step take that follow each other, from an idle
// card to an idle card. The host runs ahead of the card, so that a part of which
// the card has less to do than the host delays only what comes after it. Where both
// have as much to do, each waits for the other at times.
func Seconds(parts ...Busy) float64 { return seconds(expected, parts) }

// RangeOf is where the truth lies.
func RangeOf(parts ...Busy) Range { return Range{seconds(least, parts), seconds(most, parts)} }

func seconds(e end, parts []Busy) float64 {
	const together = 6. // the larger, the less they wait
	longest, device, host := 0., 0., 0.
	for _, p := range parts {
		device += p.at(e).Device
	}
	all := device
	for _, p := range parts {
		p = p.at(e)
		longest = max(longest, host+device)
		host += p.Host
		device -= p.Device
	}
	return max(longest, math.Pow(math.Pow(host, together)+math.Pow(all, together), 1/together))
}
