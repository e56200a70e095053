package plan

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"memorymark/internal/change"
	"memorymark/internal/predict"
	"memorymark/internal/workbudget"
)

// bestWays is how many searches findBest makes.
const bestWays = 3

// findBest looks for what is best: the cheapest and the fastest that trains all weights
// or adapters, and the simplest.
func (p *planner) findBest(ctx context.Context) error {
	return inParallel(ctx, p.atOnce(), bestWays, func(i int) (err error) {
		sims := p.newSimulations()
		defer sims.forget()
		switch i {
		case 0:
			err = p.findBestOf(ctx, change.AllWeights, sims)
		case 1:
			err = p.findBestOf(ctx, change.Adapters, sims)
		default:
			err = p.q.piece(ctx, func() error { return p.findSimplest(ctx, sims) })
		}
		p.step()
		return err
	})
}

func (p *planner) findBestOf(ctx context.Context, trains change.Trains, sims *simulations) error {
	dollars := func(t placed) float64 {
		if _, dollars := p.bill(t.site, t.seconds); dollars != nil {
			return *dollars
		}
		return math.Inf(1)
	}
	days := func(t placed) float64 { return t.seconds.Total() }
	for _, cost := range []func(placed) float64{dollars, days} {
		if err := p.findLeast(ctx, trains, cost, sims); err != nil {
			return err
		}
	}
	return nil
}

// findLeast looks for what fits at the site where it costs the least. Sites come in the
// order of what may fit, which costs about as much as what does or less, until none can
// be better.
func (p *planner) findLeast(ctx context.Context, trains change.Trains, cost func(placed) float64, sims *simulations) error {
	var tries []placed
	for _, s := range p.sites {
		first := slices.IndexFunc(s.candidates, func(c *candidate) bool { return p.mayFit(c, s) })
		if s.trains == trains && first >= 0 {
			tries = append(tries, placed{s, s.candidates[first]})
		}
	}
	slices.SortStableFunc(tries, func(a, b placed) int { return cmp.Compare(cost(a), cost(b)) })
	least := math.Inf(1)
	for _, t := range tries {
		if c := cost(t); c > least || math.IsInf(c, 1) {
			return nil
		}
		if err := p.q.piece(ctx, func() error { return p.find(ctx, t.site, sims) }); err != nil {
			return err
		}
		if t.site.took != nil {
			least = min(least, cost(placed{t.site, t.site.found}))
		}
	}
	return nil
}

// findSimplest looks for the option with the fewest changes; of those for the cheapest,
// or the fastest where nothing has a price.
func (p *planner) findSimplest(ctx context.Context, sims *simulations) error {
	byChanges := make(map[int][]placed)
	for _, s := range p.sites {
		for _, c := range s.candidates {
			byChanges[c.changes()] = append(byChanges[c.changes()], placed{s, c})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(byChanges)) {
		tries := byChanges[n]
		slices.SortStableFunc(tries, func(a, b placed) int { return cmp.Compare(p.cost(a), p.cost(b)) })
		if found, err := p.findFirst(ctx, tries, sims); found || err != nil {
			return err
		}
	}
	return nil
}

// findFirst takes the first that fits with a margin, or else without one, as the
// simplest.
func (p *planner) findFirst(ctx context.Context, tries []placed, sims *simulations) (found bool, err error) {
	var tight placed
	var least *took
	for _, t := range tries {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		took, err := sims.fits(t.candidate, t.site)
		if errors.Is(err, workbudget.ErrTooMuch) {
			break
		}
		if err != nil {
			return false, err
		}
		if took != nil && took.verdict == predict.Fits {
			p.simplest, err = p.option(t.site, t.candidate, took)
			return true, err
		}
		if took != nil && least == nil {
			tight, least = t, took
		}
	}
	if least == nil {
		return false, nil
	}
	p.simplest, err = p.option(tight.site, tight.candidate, least)
	return true, err
}

// placed is a candidate at a site.
type placed struct {
	site *site
	*candidate
}

// cost is what a candidate costs, or how long it takes where nothing has a
// price; those without one come last.
func (p *planner) cost(t placed) float64 {
	days, dollars := p.bill(t.site, t.seconds)
	if t.lastResort() {
		return math.Inf(1)
	}
	if dollars != nil {
		return *dollars
	}
	return 1e9 + days
}
