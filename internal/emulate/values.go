package emulate

import (
	"fmt"
	"slices"
)

// Values says where the numbers come from that a program reads from the device.
type Values string

const (
	// Auto values are assumed, and computed in a second run if that decided something.
	Auto Values = "auto"
	// Assumed values are those of the host where they follow from it, else made up.
	Assumed Values = "assumed"
	// Computed values come from the CPU, which runs every operator as well.
	Computed Values = "computed"
)

// ParseValues reads the name of a source of values.
func ParseValues(name string) (Values, error) {
	if v := Values(name); slices.Contains([]Values{Auto, Assumed, Computed}, v) {
		return v, nil
	}
	return "", fmt.Errorf("values are %s, %s or %s, not %q", Auto, Assumed, Computed, name)
}
