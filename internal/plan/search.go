package plan

import (
	"cmp"
	"context"
	"math"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
)

// candidate is a setup with a batch, on a card.
type candidate struct {
	*outline
	batch, passes int64
	seconds       predict.Seconds // of an update
}

// alike is how much slower a way to train may be that is taken for its fewer
// changes, as a share.
const alike = 0.03

// candidates are the ways to train at a site, the fastest first; of those about
// as fast, the ones with fewer changes.
func (p *planner) candidates(s *site) []*candidate {
	var out []*candidate
	for _, o := range p.outlines {
		if o.gpus != s.gpus || o.trains != s.trains || !o.on(s.card) {
			continue
		}
		for _, batch := range batches(p.q.GlobalBatch, o.ways) {
			passes := p.q.GlobalBatch / o.ways / batch
			out = append(out, &candidate{outline: o, batch: batch, passes: passes, seconds: o.seconds(s.card, batch, passes)})
		}
	}
	slices.SortStableFunc(out, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.class(), b.class()), a.changes()-b.changes(), cmp.Compare(a.passes, b.passes))
	})
	p.considered.Add(int64(len(out)))
	return out
}

// reluctance is how much faster a last resort must be than what it is taken
// before.
const reluctance = 2

// class is the same for candidates that are about as fast.
func (c *candidate) class() int {
	seconds := c.seconds.Total()
	if c.lastResort() {
		seconds *= reluctance
	}
	return int(math.Floor(math.Log(seconds) / math.Log1p(alike)))
}

// batches are the batches of a GPU that a global batch can be made of: powers of
// two that divide its share, and all of the share.
func batches(global, ways int64) []int64 {
	share := global / ways
	if share*ways != global {
		return nil
	}
	var out []int64
	for b := int64(1); share%b == 0 && b < share; b *= 2 {
		out = append(out, b)
	}
	return append(out, share)
}

// groupSites puts cards together that differ only in their memory and their
// speed: they ask for the same memory, so they are looked at together.
func (p *planner) groupSites() {
	type kind struct {
		device any
		gpus   int64
		trains Trains
	}
	at := make(map[kind]int)
	for _, s := range p.sites {
		k := kind{predict.Device(s.card), s.gpus, s.trains}
		i, ok := at[k]
		if !ok {
			i = len(p.groups)
			at[k] = i
			p.groups = append(p.groups, nil)
		}
		p.groups[i] = append(p.groups[i], s)
	}
}

// simulate finds what fits at every site.
func (p *planner) simulate(ctx context.Context) error {
	errs := make([]error, len(p.groups))
	err := p.q.inParallel(ctx, predict.AtOnce(p.base), len(p.groups), func(i int) {
		sims := p.newSimulations()
		for _, s := range p.groups[i] {
			if errs[i] = p.find(ctx, s, sims); errs[i] != nil {
				return
			}
		}
		sims.forget()
		p.step()
	})
	return cmp.Or(err, firstOf(errs))
}

func firstOf(errs []error) error {
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return errs[i]
}

// find looks for the fastest candidate that fits a site.
func (p *planner) find(ctx context.Context, s *site, sims *simulations) error {
	for _, c := range p.candidates(s) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.misfit == nil || c.Needs(c.batch) < s.misfit.Needs(s.misfit.batch) {
			s.misfit = c
		}
		print, err := sims.fits(c, s)
		if err != nil {
			return err
		}
		if print != nil {
			s.found, s.print, s.misfit = c, print, nil
			return nil
		}
	}
	return nil
}

// slack is how far a bound of the reference card may be above what another card
// needs.
const slack = 1.02

// simulations runs candidates of one kind of card, each once.
type simulations struct {
	p    *planner
	runs map[run]*predict.Footprint
}

type run struct {
	outline       *outline
	batch, passes int64
}

func (p *planner) newSimulations() *simulations {
	return &simulations{p: p, runs: make(map[run]*predict.Footprint)}
}

// fits returns what a candidate takes at a site if it fits, else nil. What
// cannot fit is not run.
func (s *simulations) fits(c *candidate, at *site) (*predict.Footprint, error) {
	key := run{c.outline, c.batch, c.passes}
	if float64(s.p.atLeast(at.card, key)) > slack*float64(at.limit) {
		return nil, nil //nolint:nilnil // it does not fit, and nothing is wrong
	}
	print := s.runs[key]
	if print == nil {
		w, err := s.p.workload(c.setup, key.batch, key.passes)
		if err != nil {
			return nil, err
		}
		if print, err = c.Footprint(w, at.card, s.p.q.Effort); err != nil {
			return nil, err
		}
		s.p.simulated.Add(1)
		s.p.peaks.Store(seen{at.card.ComputeCapability.Major, key}, print.Allocated)
		s.runs[key] = print
	}
	fits, err := print.FitsWithin(at.limit)
	if err != nil || !fits {
		return nil, err
	}
	return print, nil
}

// forget gives up the steps that were run.
func (s *simulations) forget() {
	for _, print := range s.runs {
		print.Forget()
	}
}

// seen is a run on some card of a generation: its kernels are those of others,
// and only their scratch memory differs.
type seen struct {
	generation int // the first number of the compute capability
	run
}

// atLeast is what a run takes on a card: what it was seen to take on another one
// of its kind, or its outline.
func (p *planner) atLeast(card *gpu.Card, r run) bytesize.Bytes {
	if peak, ok := p.peaks.Load(seen{card.ComputeCapability.Major, r}); ok {
		return peak.(bytesize.Bytes)
	}
	return r.outline.NeedsWith(r.batch, r.passes)
}

// option is what fits at a site.
func (p *planner) option(s *site, c *candidate, print *predict.Footprint) (*Option, error) {
	w, err := p.workload(c.setup, c.batch, c.passes)
	if err != nil {
		return nil, err
	}
	w.GPU = s.card.ID
	seconds := print.Timing.Seconds(s.card, c.parallel, c.passes)
	o := &Option{
		GPU: s.card.ID, GPUName: s.card.Name, GPUs: s.gpus, Card: s.card, Workload: w,
		Setup: c.String(), Trains: c.trains, Changes: c.allNames(), Batch: c.batch, Passes: c.passes,
		Peak:  Memory{print.Allocated, min(print.Reserved, s.limit), s.limit},
		Speed: p.speed(seconds),
		Price: s.price, Command: p.command(c, s.card), Recipe: newRecipe(w),
	}
	o.Days, o.Dollars = p.bill(s, seconds)
	return o, nil
}

func (p *planner) speed(s predict.Seconds) Speed {
	out := Speed{
		StepSeconds: s.Total(), WaitingSeconds: s.Waiting, Efficiency: s.Efficiency(),
		SamplesPerSecond: float64(p.q.GlobalBatch) / s.Total(),
	}
	if !p.base.TakesImages() {
		out.TokensPerSecond = out.SamplesPerSecond * float64(p.base.Sequence)
	}
	return out
}

// bill is how long all samples take, and what that costs.
func (p *planner) bill(s *site, each predict.Seconds) (days float64, dollars *float64) {
	hours := p.samples / float64(p.q.GlobalBatch) * each.Total() / 3600
	if s.price != nil {
		d := hours * float64(s.gpus) * s.price.USDPerHour
		dollars = &d
	}
	return hours / 24, dollars
}
