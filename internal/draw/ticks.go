package draw

import (
	"math"

	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
)

// byteTicks returns round amounts from 0 to most, about n of them, and a
// function that writes them in one unit.
func byteTicks(most float64, n int) (ticks []int64, write func(int64) string) {
	unit, name := bytesize.Bytes(1), "B"
	for _, u := range []struct {
		size bytesize.Bytes
		name string
	}{{bytesize.KiB, "KiB"}, {bytesize.MiB, "MiB"}, {bytesize.GiB, "GiB"}, {bytesize.TiB, "TiB"}} {
		if most >= float64(u.size) {
			unit, name = u.size, u.name
		}
	}
	step := roundStep(most/float64(unit), n) * float64(unit)
	for i := 0; float64(i)*step <= min(most, math.MaxInt64/2); i++ {
		ticks = append(ticks, int64(float64(i)*step))
	}
	return ticks, func(b int64) string {
		if b == 0 {
			return "0"
		}
		return figure.Short(math.Round(float64(b)/float64(unit)*1000)/1000) + " " + name
	}
}

// roundStep returns the smallest of 1, 2, 2.5 and 5 times a power of ten that
// divides a range in at most n parts.
func roundStep(most float64, n int) float64 {
	rough := most / float64(n)
	if rough <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if factor*power >= rough {
			return factor * power
		}
	}
	return 10 * power
}
