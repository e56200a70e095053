// Package bytesize is how MemoryMark counts, reads and prints memory: whole
// bytes, and IEC units (1 KiB = 1024 bytes) wherever a person reads them.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is an amount of memory.
type Bytes int64

// The units.
const (
	KiB Bytes = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

var units = []struct {
	name string
	size Bytes
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}}

// String prints the amount with two decimals in the largest unit that is not
// above it: "22.10 GiB", "512 B".
func (b Bytes) String() string {
	for _, u := range units {
		if b >= u.size || b <= -u.size {
			return fmt.Sprintf("%.2f %s", float64(b)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d B", int64(b))
}

// GiB returns the amount in GiB, rounded to two places as reports show it.
func (b Bytes) GiB() float64 { return math.Round(float64(b)/float64(GiB)*100) / 100 }

// Parse reads an amount as people write it: "24GiB", "1.5 MiB", "512", "20mb".
// A unit without the i means the same power of two, as PyTorch's own messages
// and settings do; a number without a unit is bytes.
func Parse(s string) (Bytes, error) {
	text := strings.TrimSpace(s)
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit, ok := parseUnit(text[len(digits):])
	if !ok {
		return 0, fmt.Errorf("size %q: unknown unit %q; use B, KiB, MiB, GiB or TiB", s, text[len(digits):])
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, fmt.Errorf("size %q: write a number and a unit, as in 24GiB", s)
	}
	bytes := math.Round(n * float64(unit))
	if bytes >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q: too large", s)
	}
	return Bytes(bytes), nil
}

func parseUnit(s string) (Bytes, bool) {
	s = strings.ToLower(s)
	if s == "" || s == "b" {
		return 1, true
	}
	for _, u := range units {
		iec := strings.ToLower(u.name)
		if s == iec || s == iec[:1]+"b" || s == iec[:1] {
			return u.size, true
		}
	}
	return 0, false
}
