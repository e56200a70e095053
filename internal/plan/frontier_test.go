package plan

import "testing"

func TestFrontier(t *testing.T) {
	option := func(dollars, days float64) *Option { return &Option{Simulated: true, Dollars: &dollars, Days: days} }
	cheap, dear, balanced, fast := option(55, 8), option(56, 9), option(56, 1), option(300, 0.5)
	free := &Option{Simulated: true, Days: 0.1} // it has no price
	p := &Plan{Options: []*Option{cheap, dear, balanced, fast, free}, Cheapest: cheap}
	p.traceFrontier()
	for o, want := range map[*Option]bool{cheap: true, dear: false, balanced: true, fast: true, free: false} {
		if o.Frontier != want {
			t.Errorf("%v dollars, %v days: on the frontier is %v", o.Dollars, o.Days, o.Frontier)
		}
	}
	if p.Balanced != balanced || p.BalancedBecause != "the same money as the cheapest, 8 times sooner" {
		t.Errorf("balanced is %+v: %s", p.Balanced, p.BalancedBecause)
	}
}
