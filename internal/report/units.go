package report

import (
	"math"
	"strconv"

	"memorymark/internal/bytesize"
)

// count writes a number with separators: 118,980.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// elapsed writes microseconds in the unit people read them in, exactly.
func elapsed(micros int64) string {
	switch {
	case micros == 0:
		return "0"
	case micros < 1000:
		return strconv.FormatInt(micros, 10) + " µs"
	case micros < 1_000_000:
		return short(float64(micros)/1e3) + " ms"
	default:
		return short(float64(micros)/1e6) + " s"
	}
}

// about writes microseconds with the three digits that matter.
func about(micros int64) string {
	unit := int64(1)
	for micros/unit >= 1000 {
		unit *= 10
	}
	return elapsed((micros + unit/2) / unit * unit)
}

// short writes at most six decimals and no trailing zeros.
func short(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

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
		return short(math.Round(float64(b)/float64(unit)*1000)/1000) + " " + name
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
