package steptime

import (
	"math"
	"sync"

	"memorymark/internal/gpu"
)

// reached is what a card reaches of its figures, as a share of what an H200 does
// of its own.
type reached struct {
	half, single, memory float64
	latency              float64 // seconds of a kernel in addition to its work, likewise
}

// compute is the share of what computes.
func (r reached) compute(on Type) float64 {
	if on == FP32 {
		return r.single
	}
	return r.half
}

// asH200 is what an H200 reaches.
var asH200 = reached{1, 1, 1, 1}

// sister is a card of which kernels were timed.
type sister struct {
	*gpu.Card
	reached
	off      float64 // within which share of the truth four of five times are
	compared string  // with what
}

var sisters = sync.OnceValue(func() []sister {
	var out []sister
	for _, f := range fields(cardTable)[1:] {
		card, err := gpu.Find(f[0])
		if err != nil {
			panic(err)
		}
		out = append(out, sister{card, reached{number(f[1]), number(f[2]), number(f[3]), number(f[4])}, number(f[5]), f[6]})
	}
	return out
})

// reachedBy is what a card reaches: as its own kernels show, or those of the nearest
// card of its architecture, or of the nearest architecture. A board that may take
// fewer watts for what its data sheet promises runs slower than that: of boards of
// one architecture, the rate is as the square root of the watts.
// Ordinary cores take less: an A100 of 250 W reaches its peak in float32.
func reachedBy(card *gpu.Card) reached { return reachedAs(card, nearest(card)) }

// enough is how many watts ordinary cores run with.
const enough = 200

func reachedAs(card *gpu.Card, best sister) reached {
	out := best.reached
	if best.Card == nil || best.BoardWatts == 0 || card.BoardWatts == 0 {
		return out
	}
	out.half = scaledByPower(out.half, promised(card, FP16), promised(best.Card, FP16))
	if card.BoardWatts < enough {
		out.single = scaledByPower(out.single, promised(card, FP32), promised(best.Card, FP32))
	}
	return out
}

// nearest is the card itself if kernels of it were timed, else the nearest that has
// such times.
func nearest(card *gpu.Card) sister {
	best, least := sister{reached: asH200}, math.Inf(1)
	for _, s := range sisters() {
		if s.ID == card.ID {
			return s
		}
		if d := apart(card, s.Card); d < least {
			best, least = s, d
		}
	}
	return best
}

// apart is how different cards are: by architecture, then by how much their boards
// promise for their watts.
func apart(a, b *gpu.Card) float64 {
	x, y := a.ComputeCapability, b.ComputeCapability
	architecture := math.Abs(float64(10*(x.Major-y.Major) + x.Minor - y.Minor))
	power := 0.
	if a.BoardWatts > 0 && b.BoardWatts > 0 {
		power = math.Abs(math.Log(promised(a, FP16) / promised(b, FP16)))
	}
	return 10*architecture + power
}

// promised is a card's peak rate for each watt.
func promised(card *gpu.Card, t Type) float64 {
	rate, _ := Peak(card, t)
	return rate / card.BoardWatts
}

func scaledByPower(share, promised, sisters float64) float64 {
	const least, most = 0.45, 1.5 // of what any card was found to reach
	return min(max(share*math.Sqrt(sisters/promised), least), most)
}
