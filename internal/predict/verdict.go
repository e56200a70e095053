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
	Tight      Verdict = "tight" // it trains here, and may not next to a desktop, under another driver or with a longer batch
	DoesNotFit Verdict = "does not fit"
)

// The margin that what fits leaves is a share of the card, and at least so much: what
// a desktop takes of a card, or a context of another driver.
const (
	marginShare = 0.02
	minMargin   = 300 * bytesize.MiB
)

// Margin is what PyTorch must leave of what it may hold for a verdict of Fits, on a
// device with so much memory.
func Margin(total bytesize.Bytes) bytesize.Bytes {
	return max(bytesize.Bytes(marginShare*float64(total)), minMargin)
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

// Judge sets the verdict of a prediction that is otherwise complete: of all ranks, and
// whichever way a race ends.
func (p *Prediction) Judge() {
	p.Margin = MarginOf(p.Workload, p.Card)
	p.Left = p.Limit - p.maxReserved()
	p.Verdict = VerdictOf(p.Fits, p.maxReserved(), p.Limit, p.Margin)
}

// maxReserved is the most that any rank reserves, whichever way a race ends.
func (p *Prediction) maxReserved() bytesize.Bytes {
	most := p.PeakReserved()
	if p.Late != nil {
		most = max(most, p.Late.PeakReserved())
	}
	for _, r := range p.Ranks {
		most = max(most, r.PeakReserved)
	}
	return most
}
