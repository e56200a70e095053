package steptime

import "memorymark/internal/gpu"

// Range is where the truth lies in about four of five cases.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// ofSister is how much farther off the times of a card may be of which no kernel
// was timed.
const ofSister = 0.1

// RangeOf is that of a number of seconds on a card.
func RangeOf(card *gpu.Card, seconds float64) Range {
	off := OffOf(card)
	return Range{seconds / (1 + off), seconds * (1 + off)}
}

// OffOf is within which share of the truth four of five times of a card are.
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
