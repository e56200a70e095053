package figure

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// maxAmount is the largest amount that is read.
const maxAmount = 1e18

// Amount is how many, such as the tokens of a run. In JSON it is a number, or text as
// people write large numbers.
type Amount float64

// scales are what a letter after a number means.
var scales = map[byte]float64{'k': 1e3, 'm': 1e6, 'b': 1e9, 'g': 1e9, 't': 1e12}

// ParseAmount reads an amount above zero: 1B, 500M, 20k, 1e9 or 1,000,000.
func ParseAmount(text string) (Amount, error) {
	digits, scale := strings.NewReplacer("_", "", ",", "", " ", "").Replace(text), 1.0
	if digits != "" {
		if s, ok := scales[digits[len(digits)-1]|0x20]; ok {
			digits, scale = digits[:len(digits)-1], s
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n > 0) || n*scale > maxAmount {
		return 0, notAmount(text)
	}
	return Amount(n * scale), nil
}

func notAmount(text string) error {
	return fmt.Errorf("%q is not a number above 0; write 1B, 500M or 20k", text)
}

// UnmarshalJSON reads a number, or an amount as text. 0 is none.
func (a *Amount) UnmarshalJSON(data []byte) (err error) {
	var text string
	if json.Unmarshal(data, &text) == nil && text != "" {
		*a, err = ParseAmount(text)
		return err
	}
	var n float64
	if json.Unmarshal(data, &n) != nil || n < 0 || n > maxAmount {
		return notAmount(string(data))
	}
	*a = Amount(n)
	return nil
}
