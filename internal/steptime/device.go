package steptime

import (
	"math"
	"sync"

	"memorymark/internal/gpu"
)

// device is a card whose launches are timed.
type device struct {
	*gpu.Card
	reached reached
	perByte float64 // cycles for each byte that the memory moves, in those of an H200
	share   float64 // within which four of five of its times are
}

func newDevice(card *gpu.Card) device {
	perByte := cycles(card) / card.BandwidthGBPerS / (cycles(h200()) / h200().BandwidthGBPerS)
	return device{card, reachedBy(card), perByte, OffOf(card)}
}

// cycles is how many cycles all multiprocessors have in a microsecond.
func cycles(card *gpu.Card) float64 {
	return float64(max(card.SMs, 1)) * float64(max(card.ClockMHz, 1000))
}

// between is how long a card does nothing from one kernel to the next that waits for it,
// in the steps of steps.jsonl (testdata/kernels) that did not wait for their host.
const between = 1.4e-6

// plain is the share of its bandwidth that an H200 reaches with the plainest kernels.
// Others reach less because they compute for every byte, which holds up a card less
// that has more cycles for each. The most that any card reaches with kernels that come
// back to a row once they know its sum is less, and with the gradients of these all
// reach the same (float32.jsonl and layers.csv of testdata/kernels: V100, T4, A100,
// H100 and RTX 3090).
const (
	plain  = 0.885
	byRows = 0.75
)

var h200 = sync.OnceValue(func() *gpu.Card {
	card, err := gpu.Find("h200")
	if err != nil {
		panic(err)
	}
	return card
})

// hostBytesPerSecond is that of copies over PCI Express.
const hostBytesPerSecond = 25e9

// shape is what a kernel's time depends on: a product of matrices, the bytes that
// it moves, those that a library copies into another order before and after it, and
// the peak rate of what computes it.
type shape struct {
	m, n, k, count float64
	moved, copied  float64
	peak           float64
	compute        float64 // the share of the class's rate that this card reaches
}

// seconds is how long the card takes for a launch.
func (d device) seconds(l *Launch) float64 {
	switch l.Kind {
	case Wait:
		return 0
	case Copy:
		return 3e-6 + l.Size[0]/hostBytesPerSecond
	case Recurrent:
		return d.recurrent(l)
	}
	if l.Kind == Convolution && l.Size[8] == 0 && l.Type != FP32 && !d.isHopper() {
		return min(d.copiedConvolution(l), d.ordinaryConvolution(l))
	}
	c, s := d.classOf(l)
	return d.physical(c, s) * correction(l)
}

// isHopper reports whether libraries choose the kernels of the card that was measured.
func (d device) isHopper() bool { return d.ComputeCapability.Major == 9 }

// copiedConvolution is a convolution on tensor cores of images whose channels are not
// last: one of images whose channels are, with copies before and after it. What the
// kernels for it on an H200 take says nothing of other cards.
func (d device) copiedConvolution(l *Launch) float64 {
	last := *l
	last.Size[8] = 1
	c, s := d.classOf(&last)
	_, plain := d.classOf(l)
	return d.physical(c, s)*correction(&last) + plain.copied/(d.BandwidthGBPerS*1e9*d.reached.memory)
}

// ordinaryConvolution is one on ordinary cores, which take what tensor cores fill up
// with zeros: three channels of an image to as many as they load at once.
func (d device) ordinaryConvolution(l *Launch) float64 {
	ordinary := *l
	ordinary.Type = FP32
	c, s := d.classOf(&ordinary)
	return d.physical(c, s) * correction(&ordinary)
}

// physical is the time of a kernel of a class by its form: the longer of what
// memory and what computing takes. It is repeated in scripts/step_time_tables.py.
func (d device) physical(c *class, s shape) float64 {
	bandwidth := d.BandwidthGBPerS * 1e9 * d.reached.memory
	memory, compute := c.memory, 0.
	switch {
	case c.compute == 0:
		memory = min(max(memory, c.limit), memory*d.perByte)
		s.moved = d.uncached(s.moved, bandwidth)
	case c.tile > 0:
		compute = d.tiled(c, s)
	default:
		compute = 2 * s.m * s.n * s.k * s.count / (c.compute * s.compute * s.peak)
	}
	return c.latency*d.reached.latency + max(s.moved/(bandwidth*memory), compute) + c.layout*s.copied/bandwidth
}

// uncached is how many bytes take as long from memory as those that a kernel moves: it
// finds in the cache some of what the one before has left there, at most what it reads.
func (d device) uncached(bytes, bandwidth float64) float64 {
	const kept, bytesPerCycle = 0.7, 16 // of the cache; of a multiprocessor
	cached := min(bytes/2, kept*float64(d.L2))
	faster := max(1, bytesPerCycle*1e6*cycles(d.Card)/bandwidth)
	return bytes - cached*(1-1/faster)
}

// tiles are those that libraries of matrix products have, in rows and columns of the result.
var tiles = [...][2]float64{{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {32, 64}, {64, 32}}

// tiled is how long a product takes with the best of the tiles: in rounds of one
// for each multiprocessor, of which the last one may not be full. Where there are few,
// several take a part of what is summed over.
func (d device) tiled(c *class, s shape) float64 {
	sms := float64(max(d.SMs, 1))
	rate := s.peak / sms * c.compute * s.compute
	best := math.Inf(1)
	for _, tile := range tiles {
		results := math.Ceil(s.m/tile[0]) * math.Ceil(s.n/tile[1]) * s.count / sms
		each := 2 * tile[0] * tile[1] * s.k / rate * (1 + c.edge*(1/tile[0]+1/tile[1]))
		for split := 1.; split <= 16 && (split == 1 || s.k/split >= 128); split *= 2 {
			share := results * split
			took := ((1-c.round)*max(share, 1) + c.round*math.Ceil(share)) * (c.tile + each/split)
			if split > 1 {
				took += c.split
			}
			best = min(best, took)
			if share > 2 {
				break
			}
		}
	}
	return best
}

// classOf is the class of a launch and what its time depends on.
func (d device) classOf(l *Launch) (*class, shape) {
	switch l.Kind {
	case Product:
		return d.product(l)
	case Convolution:
		return d.convolution(l)
	case Attention:
		variant := int(l.Size[2] + 2*l.Size[3])
		return classFor(Attention, l.Type, variant), d.computing(l.Type, shape{m: l.Size[0] / 2, n: 1, k: 1, count: 1, moved: l.Size[1]})
	case BatchNorm:
		return d.batchNorm(l)
	}
	return classFor(l.Kind, l.Type, 0), shape{moved: l.Size[0]}
}

// computing completes a shape with the rate at which the card computes in a type.
func (d device) computing(t Type, s shape) shape {
	peak, on := Peak(d.Card, t)
	s.peak, s.compute = peak, d.reached.compute(on)
	return s
}

// product has classes by layout, and others for rows that are not aligned, which
// tensor cores do not load at once.
func (d device) product(l *Launch) (*class, shape) {
	m, n, k, count := l.Size[0], l.Size[1], max(l.Size[2], 1), max(l.Size[3], 1)
	variant := int(l.Size[4])
	switch aligned := l.Size[5]; {
	case aligned == 0 || aligned >= 16: // or not known
	case aligned >= 4:
		variant += 3
	default:
		variant += 6
	}
	_, on := Peak(d.Card, l.Type)
	return classFor(Product, on, variant), d.computing(l.Type, shape{m: m, n: n, k: k, count: count, moved: (m*k + k*n + m*n) * count * l.Type.bytes()})
}

// convolution is a product whose reduction is over channels and taps, or over
// images and pixels for the gradient of the filters.
func (d device) convolution(l *Launch) (*class, shape) {
	direction, batch, channels, filters := l.Size[0], l.Size[1], l.Size[2], l.Size[3]
	taps, in, out, groups := l.Size[4], max(l.Size[5], 1), l.Size[6], max(l.Size[7], 1)
	c, f := channels/groups, filters/groups
	s := shape{m: batch * out, n: f, k: c * taps}
	switch direction {
	case Backward:
		s = shape{m: batch * in, n: c, k: f * taps * out / in}
	case FilterGrads:
		s = shape{m: f, n: c * taps, k: batch * out}
	}
	elements := batch*channels*in + batch*filters*out
	s.count, s.moved = groups, (elements+channels*filters*taps/groups)*l.Type.bytes()
	if l.Size[8] == 0 {
		s.copied = elements * l.Type.bytes()
	}
	t := l.Type
	if groups > 1 && c*f < 64 {
		t = FP32 // too narrow for tensor cores
	}
	s = d.computing(t, s)
	if d.hasFewLanes() && s.peak <= d.DenseTFLOPS.FP32*1e12 {
		s.compute = fewLanes
	}
	_, on := Peak(d.Card, l.Type)
	variant := convolutionVariant(l)
	if on == FP32 && l.Size[8] == 1 {
		variant -= 3 // of channels first: there were no others on ordinary cores
	}
	return classFor(Convolution, on, variant), s
}

// fewLanes is the share of its peak in float32 that a card reaches in convolutions
// whose multiprocessors have 64 lanes, in that of an H200, which has 128 and does not
// keep them as busy: V100 and A100 in float32.jsonl of testdata/kernels.
const fewLanes = 1.7

func (d device) hasFewLanes() bool { return d.DenseTFLOPS.FP32*1e6 < 192*cycles(d.Card) }

func convolutionVariant(l *Launch) int {
	shape := 3 // of groups
	switch groups := l.Size[7]; {
	case groups <= 1 && l.Size[4] > 1:
		shape = 0
	case groups <= 1:
		shape = 1
	case groups == l.Size[2]:
		shape = 2
	}
	return int(l.Size[0]+3*l.Size[8]) + 6*shape
}

// batchNorm reads its images twice and writes them once, or with their gradients once
// more each. It has a block for each channel, so that few channels do not fill the
// card, and a block waits for memory the longer the slower its clock is.
func (d device) batchNorm(l *Launch) (*class, shape) {
	direction, elements, channels := l.Size[0], l.Size[2], max(l.Size[3], 1)
	sms := float64(max(d.SMs, 1))
	blocks := math.Ceil(channels/sms) * sms / channels
	s := shape{m: elements * blocks / 2, n: 1, k: 1, count: 1, moved: (3 + 2*direction) * elements * l.Type.bytes(), peak: lanes * 1e6 * cycles(d.Card), compute: 1}
	return classFor(BatchNorm, l.Type, int(direction+2*l.Size[1])), s
}

// lanes is how many operations a multiprocessor of an H200 does in a cycle.
const lanes = 256

// recurrent is a pass over a recurrent layer, forward or backward: its products, and
// for each step the kernels that wait for the one before.
func (d device) recurrent(l *Launch) float64 {
	const share, step = 0.37, 31e-6 // of the peak rate in timed steps, seconds
	gates, input, hidden, layers := l.Size[0], l.Size[1], l.Size[2], l.Size[3]
	directions, batch, steps, sequential := l.Size[4], l.Size[5], l.Size[6], l.Size[7]
	operations := 2 * gates * hidden * (input + hidden*(2*layers-1)) * directions * batch * steps
	peak, on := Peak(d.Card, l.Type)
	return operations/(share*peak*d.reached.compute(on)) + sequential*steps*layers*directions*step
}
