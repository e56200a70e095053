package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/evidence"
)

// answer puts together what was found.
func (p *planner) answer() (*Plan, error) {
	out := &Plan{
		Model: p.base.Name(), Engine: p.engine(), Parameters: p.outlines[0].parameters(), GlobalBatch: p.q.GlobalBatch, Samples: p.samples,
		Options: []*Option{}, Misfits: []Misfit{},
	}
	if p.readsText() {
		out.Tokens = p.samples * float64(p.base.Sequence)
	}
	for _, s := range p.sites {
		out.Considered += len(s.candidates)
		if s.found == nil {
			out.Misfits = append(out.Misfits, p.misfitsAt(s)...)
			continue
		}
		o, err := p.option(s, s.found, s.took)
		if err != nil {
			return nil, err
		}
		out.Options = append(out.Options, o)
	}
	if p.runs == nil && len(out.Options) > 0 && simulated(out.Options) == 0 {
		return nil, p.work.Err()
	}
	p.choose(out)
	out.Simulated = int(p.simulated.Load())
	out.Notes = p.notes(out)
	return out, nil
}

// engine is what ran the steps.
func (p *planner) engine() evidence.Engine {
	if p.runs != nil {
		return evidence.Emulated
	}
	return evidence.Predicted
}

// simulated counts the options of which steps were simulated.
func simulated(options []*Option) (n int) {
	for _, o := range options {
		if o.Simulated {
			n++
		}
	}
	return n
}

// choose orders the options that are within the budget, and takes the best of those
// that were simulated.
func (p *planner) choose(out *Plan) {
	out.Options = slices.DeleteFunc(out.Options, func(o *Option) bool { return !p.q.Within.holds(o) })
	slices.SortStableFunc(out.Options, byDollars)
	for _, o := range out.Options {
		if !o.Simulated {
			continue
		}
		if out.Fastest == nil || o.Days < out.Fastest.Days {
			out.Fastest = o
		}
		if o.Dollars != nil && out.Cheapest == nil {
			out.Cheapest = o
		}
		if o.Dollars != nil && out.Whole == nil && o.Trains == change.AllWeights {
			out.Whole = o
		}
	}
	out.traceFrontier()
	if out.Whole == out.Cheapest {
		out.Whole = nil
	}
	if p.simplest != nil && p.q.Within.holds(p.simplest) {
		out.Simplest = p.simplest
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
	m := Misfit{GPU: s.card.ID, GPUs: s.gpus, Trains: s.trains, Needs: c.needs(), Limit: s.limit, Setup: c.String()}
	m.Days, m.Dollars = p.bill(s, c.seconds)
	needs, each := "needs at least", ""
	var allocated bytesize.Bytes
	if s.misfitProcess != nil {
		needs = "needs"
		allocated, m.Needs = s.misfitProcess.Memory()
	}
	if s.gpus > 1 {
		each = " of each GPU"
	}
	if p.runs != nil && m.Needs <= s.limit {
		m.Reason = fmt.Sprintf("%s with batch %d runs out of the %v that PyTorch may hold", c, c.batch, s.limit)
		return []Misfit{m}
	}
	if s.misfitProcess != nil && allocated <= s.limit {
		m.Reason = fmt.Sprintf("%s with batch %d allocates %v%s, and does not fit %v, because the free memory is fragmented", c, c.batch, allocated, each, s.limit)
		return []Misfit{m}
	}
	m.Reason = fmt.Sprintf("%s with batch %d %s %v%s, and PyTorch may hold %v", c, c.batch, needs, m.Needs, each, s.limit)
	return []Misfit{m}
}

// notes say what a reader of the plan must know.
func (p *planner) notes(out *Plan) []string {
	if p.runs != nil {
		return append(p.emulatedNotes(out), priceNotes(out.Options)...)
	}
	memory := "Memory is predicted, and every option was simulated."
	if n := simulated(out.Options); n < len(out.Options) {
		memory = fmt.Sprintf("Memory is predicted. %d of %d options were simulated, the best first: all of them take too long for one question to a server. "+
			"The others may not fit, and their memory is a lower bound. On your own machine, memorymark plan simulates every option.", n, len(out.Options))
	}
	notes := []string{
		memory + " Times are by a time model of steps, and on several GPUs by what NCCL moves over links.",
		fmt.Sprintf("On several GPUs, %v of each are kept free for NCCL's own buffers, as measured on an H200.", bytesize.Bytes(ncclReserve)),
	}
	if note := tieNote(out); note != "" {
		notes = append(notes, note)
	}
	return append(notes, priceNotes(out.Options)...)
}

// tieNote names the options on other cards that may cost less than the cheapest: the
// ranges of their times overlap. On one card, times are off alike.
func tieNote(out *Plan) string {
	best, seen := out.Cheapest, make(map[string]bool)
	if best == nil {
		return ""
	}
	var names []string
	for _, o := range out.Options {
		if o.Dollars == nil || o.GPU == best.GPU || seen[o.GPU] || !o.Simulated || o.leastDollars() > *best.Dollars*(1+best.Off) {
			continue
		}
		seen[o.GPU] = true
		names = append(names, o.GPU)
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Times on %s are known within %.0f %%; on %s what costs more here may cost no more: the ranges overlap.",
		best.GPU, 100*best.Off, strings.Join(names, ", "))
}

// leastDollars are those that it costs in four of five cases at least, if it is known
// what it costs.
func (o *Option) leastDollars() float64 {
	if o.seconds.Range.Low == 0 {
		return *o.Dollars
	}
	return *o.Dollars * o.seconds.Range.Low / o.seconds.Total()
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
