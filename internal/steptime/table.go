package steptime

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// The tables are written by scripts/step_time_tables.py.
var (
	//go:embed classes.csv
	classTable string
	//go:embed points.csv
	pointTable string
	//go:embed cards.csv
	cardTable string
)

// class is what kernels of a kind reach on an H200: seconds for each, shares of the
// bandwidth and of the peak rate, and how products are computed in tiles.
type class struct {
	latency, memory, compute         float64
	tile, edge, round, split, layout float64
	median, nineInTen                float64 // how far off the measured ones are
	limit                            float64 // share of the bandwidth that any card reaches
}

func limitOf(k Kind) float64 {
	switch k {
	case LayerNorm, Softmax, LogSoftmax:
		return byRows
	case LayerNormBackward, SoftmaxBackward, LogSoftmaxBackward:
		return 0
	}
	return plain
}

type classKey struct {
	kind    Kind
	kindOf  Type
	variant int
}

var classes = sync.OnceValue(func() map[classKey]*class {
	out := make(map[classKey]*class)
	for _, f := range fields(classTable)[1:] {
		k := key(f[0], f[1])
		k.variant = int(number(f[2]))
		out[k] = &class{
			latency: number(f[3]) * 1e-6, memory: number(f[4]), compute: number(f[5]), tile: number(f[6]) * 1e-6, edge: number(f[7]),
			round: number(f[8]), split: number(f[9]) * 1e-6, layout: number(f[10]), median: number(f[11]), nineInTen: number(f[12]), limit: limitOf(k.kind),
		}
	}
	return out
})

// classFor is the class of a kind: of a type that computes alike where its own was
// not measured.
func classFor(k Kind, t Type, variant int) *class {
	for _, like := range [...]Type{t, alike16(t), BF16, TF32, FP32} {
		if c := classes()[classKey{k, like, variant}]; c != nil {
			return c
		}
		if t.bytes() > 2 { // float32 in tensor cores or not, but no half
			if c := classes()[classKey{k, FP32, variant}]; c != nil {
				return c
			}
		}
	}
	if variant > 0 {
		return classFor(k, t, variant%3)
	}
	return classes()[classKey{Kernel, FP32, 0}]
}

// alike16 is the other type of 16 bits.
func alike16(t Type) Type {
	switch t {
	case FP16:
		return BF16
	case BF16:
		return FP16
	}
	return t
}

func key(kind, t string) (k classKey) {
	if err := k.kind.UnmarshalText([]byte(kind)); err != nil {
		panic(err)
	}
	if err := k.kindOf.UnmarshalText([]byte(t)); err != nil {
		panic(err)
	}
	return k
}

func fields(table string) [][]string {
	var out [][]string
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, strings.Split(line, ","))
		}
	}
	return out
}

func number(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("a table of step times has %q for a number", s))
	}
	return n
}

// point is a kernel that was timed on an H200: the logarithms of its sizes, and of
// its time as a share of the physical one.
type point struct {
	at    [maxSizes]float64
	share float64
}

// pointKey is what points must have in common to tell of each other.
type pointKey struct {
	kind    Kind
	t       Type
	variant int
}

var points = sync.OnceValue(func() map[pointKey][]point {
	d := device{Card: h200(), reached: asH200, perByte: 1}
	out := make(map[pointKey][]point)
	for _, f := range fields(pointTable) {
		k := key(f[0], f[1])
		l := Launch{Kind: k.kind, Type: k.kindOf}
		for i, s := range f[3:] {
			l.Size[i] = number(s)
		}
		of, at := whereabouts(&l)
		out[of] = append(out[of], point{at, math.Log(number(f[2]) * 1e-6 / d.physical(d.classOf(&l)))})
	}
	return out
})

// whereabouts is where a launch lies among the measured ones.
func whereabouts(l *Launch) (k pointKey, at [maxSizes]float64) {
	k = pointKey{kind: l.Kind, t: l.Type}
	sizes := l.Size
	switch l.Kind {
	case Convolution:
		k.variant = convolutionVariant(l)
		sizes[0], sizes[8] = 1, 1
	case Attention:
		k.variant = int(l.Size[2] + 2*l.Size[3])
		causal := l.Size[0] / max(l.Size[4]*l.Size[5]*l.Size[6]*l.Size[7], 1)
		sizes = [maxSizes]float64{l.Size[4], l.Size[5], l.Size[6], l.Size[7], causal}
	case BatchNorm:
		k.variant = int(l.Size[0] + 2*l.Size[1])
		sizes = [maxSizes]float64{l.Size[2] / max(l.Size[3], 1), l.Size[3]}
	}
	for i, s := range sizes {
		at[i] = math.Log2(max(s, 1e-3))
	}
	return k, at
}

// correction is how much longer than the physical time a kernel takes whose
// algorithm a library chooses by tables of its own: as the nearest measured ones do.
func correction(l *Launch) float64 {
	if l.Kind != Convolution && l.Kind != Attention && l.Kind != BatchNorm {
		return 1
	}
	k, at := whereabouts(l)
	near := points()[k]
	if near == nil {
		k.t = alike16(k.t)
		near = points()[k]
	}
	weights, sum := 0., 0.
	for i := range near {
		distance := 0.
		for j, x := range near[i].at {
			distance += (x - at[j]) * (x - at[j])
		}
		w := 1 / (0.02 + distance)
		w *= w
		weights += w
		sum += w * near[i].share
	}
	if weights == 0 {
		return 1
	}
	return math.Exp(sum / (weights + 0.05)) // far from all of them the physical time stands
}
