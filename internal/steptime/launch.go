package steptime

import (
	"math"

	"memorymark/internal/gpu"
)

// device is a card whose launches are timed by a model.
type device struct {
	*gpu.Card
	model *model
}

// sustained is the rate that large matrix products reach.
func (d device) sustained(t Type) float64 {
	rate, on := Peak(d.Card, t)
	switch on {
	case FP32:
		return rate * d.model.fp32
	case TF32:
		return rate * d.model.tf32
	}
	return rate * d.model.half
}

// moving is how long kernels take to read and write so many bytes.
func (d device) moving(bytes float64) float64 {
	return bytes / (d.BandwidthGBPerS * 1e9 * d.model.bandwidth)
}

// seconds is how long the card takes for a launch.
func (d device) seconds(l *Launch) float64 {
	m := d.model
	switch l.Kind {
	case Product:
		return m.kernel + d.product(l)
	case Convolution:
		return m.kernel + d.convolution(l)
	case Attention:
		share := m.attentionTensor
		if l.Type == FP32 {
			share = m.attentionFP32
		}
		return m.kernel + max(l.size(0)/(share*d.sustained(l.Type)), d.moving(l.size(1)))
	case Recurrent:
		return m.kernel + d.recurrent(l)
	case Copy:
		return m.kernel + l.size(0)/hostBytesPerSecond
	case Wait:
		return 0
	}
	return m.kernel + d.moving(l.size(0))
}

func (d device) product(l *Launch) float64 {
	m, n, k, count := l.size(0), l.size(1), max(l.size(2), 1), l.size(3)
	compute := 2 * m * n * k * count / d.sustained(l.Type) * (1 + d.model.shallow/k) / d.busy(m, n, k, count)
	bytes := (m*k + k*n + m*n) * count * l.Type.bytes()
	return max(compute, d.moving(bytes))
}

// busy is the share of the card that a product keeps busy. Its result is
// computed in tiles, in rounds of one for each multiprocessor; the last round
// is not full. Where there is not even one, some take a part of the reduction.
// cuBLAS has tiles of many sizes to make the best of it, so half of what is
// idle by this count is not.
func (d device) busy(m, n, k, count float64) float64 {
	rounds := math.Ceil(m/tile) * math.Ceil(n/tile) * count / float64(max(d.SMs, 1))
	share := rounds / math.Ceil(rounds)
	if rounds < 1 {
		share = min(1, rounds*max(1, k/splitDepth))
	}
	return math.Sqrt(max(share, 1e-3))
}

func (d device) convolution(l *Launch) float64 {
	direction, batch, channels, filters := l.size(0), l.size(1), l.size(2), l.size(3)
	taps, in, out, groups := l.size(4), l.size(5), l.size(6), max(l.size(7), 1)
	operations := 2 * batch * channels * filters * taps * out / groups
	bytes := (batch*channels*in + batch*filters*out + channels*filters*taps/groups) * l.Type.bytes()
	if groups > 1 {
		share := d.model.groupedFP32
		if l.Type.bytes() == 2 {
			share = d.model.groupedHalf
		}
		return max(operations/(share*d.sustained(FP32)), d.moving(bytes))
	}
	share := d.model.convolutionTensor
	switch {
	case l.Type == FP32 && direction == 0:
		share = d.model.forwardFP32
	case l.Type == FP32:
		share = d.model.gradientFP32
	}
	return max(operations/(share*d.sustained(l.Type)), d.moving(bytes)/d.model.convolutionBandwidth)
}

// recurrent is a pass over a recurrent layer, forward or backward.
func (d device) recurrent(l *Launch) float64 {
	gates, input, hidden, layers := l.size(0), l.size(1), l.size(2), l.size(3)
	directions, batch, steps, sequential := l.size(4), l.size(5), l.size(6), l.size(7)
	operations := 2 * gates * hidden * (input + hidden*(2*layers-1)) * directions * batch * steps
	return operations/(d.model.recurrent*d.sustained(l.Type)) + sequential*steps*layers*directions*d.model.recurrentStep
}
