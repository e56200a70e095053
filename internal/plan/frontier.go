package plan

import (
	"fmt"

	"memorymark/internal/figure"
)

// traceFrontier marks the options that no other beats in both dollars and days, and takes the
// one of them with the least product of both as the balanced one: from there, a share
// of the time saved costs a larger share of the money. Options are ordered by dollars.
func (out *Plan) traceFrontier() {
	var last *Option
	for _, o := range out.Options {
		if !o.Simulated || o.Dollars == nil || last != nil && o.Days >= last.Days {
			continue
		}
		o.Frontier, last = true, o
		if out.Balanced == nil || *o.Dollars*o.Days < *out.Balanced.Dollars*out.Balanced.Days {
			out.Balanced = o
		}
	}
	if out.Balanced != nil && out.Balanced != out.Cheapest {
		out.BalancedBecause = against(*out.Balanced.Dollars / *out.Cheapest.Dollars, out.Cheapest.Days/out.Balanced.Days)
	}
}

// sameMoney is how much more counts as the same.
const sameMoney = 1.05

// against compares an option with the cheapest.
func against(money, sooner float64) string {
	if money <= sameMoney {
		return fmt.Sprintf("the same money as the cheapest, %s times sooner", times(sooner))
	}
	return fmt.Sprintf("%s times the money of the cheapest, %s times sooner", times(money), times(sooner))
}

func times(n float64) string { return figure.Short(figure.Significant(n, 2)) }
