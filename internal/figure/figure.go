// Package figure rounds numbers, and writes counts and times for people.
package figure

import (
	"math"
	"strconv"
)

// Count writes a number with separators: 118,980.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Elapsed writes microseconds in the unit people read them in, exactly.
func Elapsed(micros int64) string {
	switch {
	case micros == 0:
		return "0"
	case micros < 1000:
		return strconv.FormatInt(micros, 10) + " µs"
	case micros < 1_000_000:
		return Short(float64(micros)/1e3) + " ms"
	default:
		return Short(float64(micros)/1e6) + " s"
	}
}

// About writes microseconds with the three digits that matter.
func About(micros int64) string {
	unit := int64(1)
	for micros/unit >= 1000 {
		unit *= 10
	}
	return Elapsed((micros + unit/2) / unit * unit)
}

// Short writes at most six decimals and no trailing zeros.
func Short(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

// Round rounds to a number of decimal places.
func Round(x float64, places int) float64 {
	scale := math.Pow(10, float64(places))
	return math.Round(x*scale) / scale
}

// Significant rounds to a number of significant digits, so that figures of any size differ.
func Significant(x float64, digits int) float64 {
	if x == 0 {
		return 0
	}
	return Round(x, digits-1-int(math.Floor(math.Log10(math.Abs(x)))))
}
