package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"memorymark/internal/bytesize"
)

// answer puts together what was found.
func (p *planner) answer(ctx context.Context) (*Plan, error) {
	out := &Plan{
		Model: p.base.Name(), Parameters: p.outlines[0].Parameters, GlobalBatch: p.q.GlobalBatch, Samples: p.samples,
		Options: []*Option{}, Misfits: []Misfit{},
	}
	if !p.base.TakesImages() {
		out.Tokens = p.samples * float64(p.base.Sequence)
	}
	for _, s := range p.sites {
		if s.found == nil {
			out.Misfits = append(out.Misfits, p.misfitsAt(s)...)
			continue
		}
		o, err := p.option(s, s.found, s.print)
		if err != nil {
			return nil, err
		}
		out.Options = append(out.Options, o)
	}
	var simplest *Option
	err := p.q.piece(ctx, func() (err error) {
		simplest, err = p.simplest(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.choose(out, simplest)
	out.Considered, out.Simulated = int(p.considered.Load()), int(p.simulated.Load())
	out.Notes = p.notes(out)
	return out, nil
}

// choose orders the options that are within the budget, and takes the best.
func (p *planner) choose(out *Plan, simplest *Option) {
	out.Options = slices.DeleteFunc(out.Options, func(o *Option) bool { return !p.q.Within.holds(o) })
	slices.SortStableFunc(out.Options, byDollars)
	if len(out.Options) == 0 {
		return
	}
	out.Fastest = slices.MinFunc(out.Options, func(a, b *Option) int { return cmp.Compare(a.Days, b.Days) })
	if out.Options[0].Dollars != nil {
		out.Cheapest = out.Options[0]
		whole := slices.IndexFunc(out.Options, func(o *Option) bool { return o.Trains == AllWeights && o.Dollars != nil })
		if whole > 0 {
			out.Whole = out.Options[whole]
		}
	}
	if simplest != nil && p.q.Within.holds(simplest) {
		out.Simplest = simplest
	}
}

// byDollars orders options by what they cost, those without a price last and by
// their days.
func byDollars(a, b *Option) int {
	cost := func(o *Option) float64 {
		if o.Dollars == nil {
			return math.Inf(1)
		}
		return *o.Dollars
	}
	return cmp.Or(cmp.Compare(cost(a), cost(b)), cmp.Compare(a.Days, b.Days))
}

// holds reports whether an option is within the budget.
func (b Budget) holds(o *Option) bool {
	return (b.Days == 0 || o.Days <= b.Days) && (b.Dollars == 0 || o.Dollars != nil && *o.Dollars <= b.Dollars)
}

// misfitsAt is why nothing fits a site, nothing if there was nothing to try.
func (p *planner) misfitsAt(s *site) []Misfit {
	c := s.misfit
	if c == nil {
		return nil
	}
	m := Misfit{GPU: s.card.ID, GPUs: s.gpus, Trains: s.trains, Needs: c.Needs(c.batch), Limit: s.limit, Setup: c.String()}
	m.Days, m.Dollars = p.bill(s, c.seconds)
	m.Reason = fmt.Sprintf("%s with batch %d needs at least %v of each GPU, and PyTorch may hold %v", c, c.batch, m.Needs, s.limit)
	if m.Needs <= s.limit {
		m.Reason = fmt.Sprintf("%s with batch %d does not fit %v, because the allocator's memory is in pieces", c, c.batch, s.limit)
	}
	return []Misfit{m}
}

// simplest is the option with the fewest changes; of those the cheapest, or the
// fastest where nothing has a price.
func (p *planner) simplest(ctx context.Context) (*Option, error) {
	byChanges := make(map[int][]placed)
	for _, s := range p.sites {
		for _, c := range p.candidates(s) {
			byChanges[c.changes()] = append(byChanges[c.changes()], placed{s, c})
		}
	}
	sims := p.newSimulations()
	defer sims.forget()
	for _, n := range slices.Sorted(maps.Keys(byChanges)) {
		tries := byChanges[n]
		slices.SortStableFunc(tries, func(a, b placed) int {
			return cmp.Compare(p.cost(a), p.cost(b))
		})
		for _, t := range tries {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			print, err := sims.fits(t.candidate, t.site)
			if err != nil {
				return nil, err
			}
			if print != nil {
				return p.option(t.site, t.candidate, print)
			}
		}
	}
	return nil, nil //nolint:nilnil // nothing fits, and nothing is wrong
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

// notes say what a reader of the plan must know.
func (p *planner) notes(out *Plan) []string {
	notes := []string{
		"Memory is predicted, and every option was simulated. Times are coarse: a time model of steps, and bytes over links for communication.",
		fmt.Sprintf("On several GPUs, %v of each are kept free for NCCL's own buffers, as measured on an H200.", bytesize.Bytes(ncclReserve)),
	}
	return append(notes, priceNotes(out.Options)...)
}

// priceNotes say which markets and days the prices are of.
func priceNotes(options []*Option) []string {
	kinds, markets := make(map[string]bool), make(map[string]bool)
	var first, last string
	for _, o := range options {
		p := o.Price
		if p == nil {
			continue
		}
		kinds[strings.Join(strings.Fields(fmt.Sprintf("%s (%s, %s)", p.Provider, p.Market, p.AsOf)), " ")], markets[p.Market] = true, true
		if first == "" || p.AsOf < first {
			first = p.AsOf
		}
		last = max(last, p.AsOf)
	}
	if len(kinds) == 0 {
		return nil
	}
	notes := []string{"Prices are of " + strings.Join(slices.Sorted(maps.Keys(kinds)), ", ") + "."}
	from, errFrom := time.Parse(time.DateOnly, first)
	to, errTo := time.Parse(time.DateOnly, last)
	if len(markets) > 1 || errFrom == nil && errTo == nil && to.Sub(from) > samePeriod {
		notes = append(notes, "They are of different markets or times: what is cheapest may be so only on paper.")
	}
	return notes
}
