package steptime

import "memorymark/internal/gpu"

// Range is where the truth lies in about four of five cases.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Plus is the range of a sum.
func (r Range) Plus(other Range) Range { return Range{r.Low + other.Low, r.High + other.High} }

// Times is the range of a multiple.
func (r Range) Times(n float64) Range { return Range{n * r.Low, n * r.High} }

// AtLeast is the range of what takes no less than a number of seconds.
func (r Range) AtLeast(seconds float64) Range {
	return Range{max(r.Low, seconds), max(r.High, seconds)}
}

// Holds reports whether a number of seconds lies in it.
func (r Range) Holds(seconds float64) bool { return r.Low <= seconds && seconds <= r.High }

// ofSister is how much farther off the times of a card may be of which no kernel
// was timed, and ofConvolution those of convolutions on cards for which libraries choose
// other kernels than for the card that was measured.
const (
	ofSister      = 0.1
	ofConvolution = 0.15
)

// What the host takes is known less well: on servers with the same cards and versions it
// took from 0.55 to 1.25 of the constants of host.go.
const (
	hostFaster = 1.7
	hostSlower = 1.3
)

// end is one of a range, or what is expected between them.
type end int

const (
	expected end = iota
	least
	most
)

func (e end) host(seconds float64) float64 { return e.of(seconds, hostFaster, hostSlower) }

func (e end) device(seconds, off float64) float64 { return e.of(seconds, 1+off, 1+off) }

func (e end) of(seconds, faster, slower float64) float64 {
	switch e {
	case least:
		return seconds / faster
	case most:
		return seconds * slower
	}
	return seconds
}

// off is within which share of the truth four of five launches like this one are.
func (d device) off(l *Launch) float64 {
	if l.Kind == Convolution && !d.isHopper() {
		return d.share + ofConvolution
	}
	return d.share
}

// OffOf is within which share of the truth four of five times of a card are that do not
// wait for its host.
func OffOf(card *gpu.Card) float64 {
	s := nearest(card)
	if s.Card == nil || s.ID != card.ID {
		return s.off + ofSister
	}
	return s.off
}

// Compared says with what times of a card were compared.
func Compared(card *gpu.Card) string {
	s := nearest(card)
	switch {
	case s.Card == nil:
		return "no times of such a card were found"
	case s.ID != card.ID:
		return "no times of it were found: it goes by those of an " + s.Name
	}
	return "compared with " + s.compared
}

// KWh is the energy that boards of a card take at most in a number of seconds, 0 where
// their power is not known.
func KWh(card *gpu.Card, seconds float64) float64 { return card.BoardWatts * seconds / 3.6e6 }
