package predict

import (
	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Verdict says whether steps fit a card, and whether by enough to rely on.
type Verdict string

// The verdicts.
const (
	Fits       Verdict = "fits"
	Tight      Verdict = "tight" // it trains here, and may not beside a desktop, under another driver or with a longer batch
	DoesNotFit Verdict = "does not fit"
)

// The margin that what fits leaves is a share of the card, and at least so much: what
// a desktop takes of a card, or a context of another driver.
const (
	marginShare = 0.02
	leastMargin = 300 * bytesize.MiB
)

// Margin is what PyTorch must leave of what it may hold for a verdict of Fits, on a
// device with so much memory.
func Margin(total bytesize.Bytes) bytesize.Bytes {
	return max(bytesize.Bytes(marginShare*float64(total)), leastMargin)
}

// MarginOf is the margin of a workload on a card. A limit that the workload sets
// stands for a card of that size.
func MarginOf(w *workload.Workload, card *gpu.Card) bytesize.Bytes {
	total := card.Memory.Bytes
	if limit := w.Limit(); limit > 0 {
		total = min(total, limit)
	}
	return Margin(total)
}

// VerdictOf is the verdict on steps that reserve so much of a limit.
func VerdictOf(trains bool, reserved, limit, margin bytesize.Bytes) Verdict {
	switch {
	case !trains:
		return DoesNotFit
	case limit-reserved < margin:
		return Tight
	default:
		return Fits
	}
}

// Verdict is that on a simulation, whichever way a race ends.
func (s *Simulation) Verdict(margin bytesize.Bytes) Verdict {
	return VerdictOf(s.Fits(), s.reserved(), s.Limit, margin)
}

// reserved is the most that is reserved, whichever way a race ends.
func (s *Simulation) reserved() bytesize.Bytes {
	reserved := s.Peak().PeakReserved
	if s.late != nil {
		reserved = max(reserved, s.late.Peak().PeakReserved)
	}
	return reserved
}

// Judge sets the verdict of a prediction that is otherwise complete: of all ranks, and
// whichever way a race ends.
func (p *Prediction) Judge() {
	p.Margin = MarginOf(p.Workload, p.Card)
	p.Verdict = VerdictOf(p.Fits, p.mostReserved(), p.Limit, p.Margin)
}

// mostReserved is the most that any rank reserves, whichever way a race ends.
func (p *Prediction) mostReserved() bytesize.Bytes {
	most := p.PeakReserved()
	if p.Late != nil {
		most = max(most, p.Late.PeakReserved())
	}
	for _, r := range p.Ranks {
		most = max(most, r.PeakReserved)
	}
	return most
}

// Left is what PyTorch leaves of what it may hold, of the rank that leaves the least.
func (p *Prediction) Left() bytesize.Bytes { return p.Limit - p.mostReserved() }
