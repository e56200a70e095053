package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"memorymark/internal/gpu"
)

// This file reads what people write: cards and how many, amounts of money and
// time, large numbers.

// ParseHoldings reads cards and how many there are of each, as in
// rtx-4090 x2, a100-80gb; one if it does not say. Find looks a card up.
func ParseHoldings(text string, find func(name string) (*gpu.Card, error)) ([]Holding, error) {
	var out []Holding
	for part := range strings.SplitSeq(text, ",") {
		name, count := strings.TrimSpace(part), int64(1)
		if words := strings.Fields(part); len(words) > 1 {
			digits, ok := strings.CutPrefix(strings.ToLower(words[len(words)-1]), "x")
			if n, err := strconv.ParseInt(digits, 10, 32); ok && err == nil && n > 0 {
				name, count = strings.Join(words[:len(words)-1], " "), n
			}
		}
		if name == "" {
			return nil, errors.New("a card is missing; write rtx-4090 x2, a100-80gb")
		}
		card, err := find(name)
		if err != nil {
			return nil, err
		}
		out = append(out, Holding{Card: card, Count: count})
	}
	return out, nil
}

// ParseBudget reads what a plan may cost and take, as in $500, 3 days.
func ParseBudget(text string) (b Budget, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.ToLower(strings.TrimSpace(part))
		into, digits, scale := &b.Dollars, part, 1.0
		switch {
		case strings.HasPrefix(part, "$"):
			digits = part[1:]
		case cutUnit(&digits, "dollars", "usd"):
		case cutUnit(&digits, "days", "day", "d"):
			into = &b.Days
		case cutUnit(&digits, "hours", "hour", "h"):
			into, scale = &b.Days, 1.0/24
		case cutUnit(&digits, "weeks", "week"):
			into, scale = &b.Days, 7
		default:
			return b, fmt.Errorf("%q is neither money nor time; write $500, 3 days", part)
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(n > 0) || n > 1e18 {
			return b, fmt.Errorf("%q is not an amount above 0; write $500, 3 days", part)
		}
		*into = n * scale
	}
	return b, nil
}

// cutUnit takes a unit off the end of a text.
func cutUnit(text *string, units ...string) bool {
	for _, u := range units {
		if rest, ok := strings.CutSuffix(*text, u); ok {
			*text = rest
			return true
		}
	}
	return false
}
