package plan

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/recipe"
	"memorymark/internal/steptime"
	"memorymark/internal/workbudget"
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

// candidatesAt are the ways to train at a site, the fastest first; of those about
// as fast, the ones with fewer changes.
func (p *planner) candidatesAt(s *site) []*candidate {
	var out []*candidate
	for _, o := range p.outlines {
		if o.gpus != s.gpus || o.trains != s.trains || !o.on(s.card) {
			continue
		}
		for _, batch := range batches(p.q.GlobalBatch, o.ways) {
			passes := p.q.GlobalBatch / o.ways / batch
			out = append(out, &candidate{outline: o, batch: batch, passes: passes, seconds: o.seconds(s.card, batch, passes).Fed(p.loading(batch * passes))})
		}
	}
	slices.SortStableFunc(out, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.class(), b.class()), a.changes()-b.changes(), cmp.Compare(a.passes, b.passes))
	})
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

// batches are the batches of a GPU that a global batch can be made of, nil if it cannot
// be shared evenly.
func batches(global, ways int64) []int64 {
	if global%ways != 0 {
		return nil
	}
	return change.Batches(global / ways)
}

// groupSites puts sites together whose steps are alike, which are those with as many
// GPUs that train the same, and among them those whose cards differ only in memory
// and speed.
func (p *planner) groupSites() {
	type group struct {
		gpus   int64
		trains change.Trains
	}
	type kind struct {
		group
		device any
	}
	groups, kinds := make(map[group]int), make(map[kind]int)
	for _, s := range p.sites {
		g := group{s.gpus, s.trains}
		at, ok := groups[g]
		if !ok {
			at = len(p.groups)
			groups[g] = at
			p.groups = append(p.groups, nil)
		}
		k := kind{g, predict.Device(s.card)}
		i, ok := kinds[k]
		if !ok {
			i = len(p.groups[at])
			kinds[k] = i
			p.groups[at] = append(p.groups[at], nil)
		}
		p.groups[at][i] = append(p.groups[at][i], s)
	}
}

// spared is what simulations leave of a bounded work, for putting the answer together.
const spared = workbudget.PerQuestion / 20

// simulate finds what fits at every site: first where it may be best, then everywhere.
func (p *planner) simulate(ctx context.Context) error {
	p.work = p.q.Work.KeepingBack(spared)
	if err := p.findBest(ctx); err != nil {
		return err
	}
	if p.runs != nil {
		return p.emulateRest(ctx)
	}
	return inParallel(ctx, predict.MaxConcurrent(p.base, false), len(p.groups), func(i int) error {
		sims := p.newSimulations()
		defer sims.forget()
		for _, kind := range p.groups[i] {
			if err := p.q.piece(ctx, func() error { return p.findAll(ctx, kind, sims) }); err != nil {
				return err
			}
			p.step()
		}
		return nil
	})
}

func (p *planner) findAll(ctx context.Context, sites []*site, sims *simulations) error {
	for _, s := range sites {
		if err := p.find(ctx, s, sims); err != nil {
			return err
		}
	}
	return nil
}

// find looks for the fastest candidate that fits a site with a margin, or else without
// one, unless that was done before. The first one that there is no work left for may fit.
func (p *planner) find(ctx context.Context, s *site, sims *simulations) error {
	if s.searched {
		return nil
	}
	for _, c := range s.candidates {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.misfit == nil || c.needs() < s.misfit.needs() {
			s.misfit = c
		}
		took, err := sims.fits(c, s)
		if errors.Is(err, workbudget.ErrTooMuch) {
			if s.took == nil {
				s.found = c
			}
			break
		}
		if err != nil {
			return err
		}
		if took != nil && (s.took == nil || took.verdict == predict.Fits) {
			s.found, s.took = c, took
		}
		if took != nil && took.verdict == predict.Fits {
			break
		}
	}
	s.searched = true
	if s.found == nil && s.misfit != nil && p.runs == nil {
		return p.measureMisfit(s, sims)
	}
	return nil
}

// measureMisfit finds out what a site would need, as far as there is work left.
func (p *planner) measureMisfit(s *site, sims *simulations) error {
	cards, err := sims.of(s.misfit.run(), s.card)
	if err == nil {
		s.misfitProcess, err = cards.Process(s.card)
	}
	if errors.Is(err, workbudget.ErrTooMuch) {
		return nil
	}
	return err
}

// slack is how far a bound of the reference card may be above what another card
// needs.
const slack = 1.02

// simulations runs candidates, each once for cards that are asked for the same
// memory.
type simulations struct {
	p      *planner
	runs   map[run]*predict.CardRuns
	latest []run // those whose steps are held, the one that was asked about last at the end
}

type run struct {
	outline       *outline
	batch, passes int64
}

func (c *candidate) run() run { return run{c.outline, c.batch, c.passes} }

func (p *planner) newSimulations() *simulations {
	return &simulations{p: p, runs: make(map[run]*predict.CardRuns)}
}

// took is what a candidate takes at a site that it fits.
type took struct {
	allocated bytesize.Bytes
	reserved  bytesize.Bytes // under the site's limit
	verdict   predict.Verdict
	seconds   predict.Seconds // of an update
}

// fits returns what a candidate takes at a site if it fits, else nil. What
// cannot fit is not run.
func (s *simulations) fits(c *candidate, at *site) (*took, error) {
	key := c.run()
	if !s.p.mayFit(c, at) {
		return nil, nil //nolint:nilnil // it does not fit, and nothing is wrong
	}
	if s.p.runs != nil {
		return s.p.emulate(c, at)
	}
	cards, err := s.of(key, at.card)
	if err != nil {
		return nil, err
	}
	before := cards.Played()
	process, err := cards.Process(at.card)
	if err != nil {
		return nil, err
	}
	s.p.simulated.Add(int64(cards.Played() - before))
	allocated, _ := process.Memory()
	s.p.peaks.Store(seen{at.card.ComputeCapability.Major, key}, allocated)
	reserved, fits, err := process.Within(at.limit)
	if err != nil || !fits {
		return nil, err
	}
	return &took{
		allocated, reserved, predict.VerdictOf(fits, reserved, at.limit, at.margin), process.Seconds(at.card, c.parallel, c.passes),
	}, nil
}

// of returns the processes of a run, for a card.
func (s *simulations) of(key run, card *gpu.Card) (*predict.CardRuns, error) {
	cards := s.runs[key]
	if cards == nil {
		w, err := s.p.draft(key.outline.setup, key.batch, key.passes).WorkloadWithin(s.p.work)
		if err != nil {
			return nil, err
		}
		owners, err := s.p.ownersOf(key.outline.setup, card)
		if err != nil {
			return nil, err
		}
		cards = key.outline.OnCards(w, owners, s.p.work)
		s.runs[key] = cards
	}
	if i := slices.Index(s.latest, key); i >= 0 {
		s.latest = slices.Delete(s.latest, i, i+1)
	}
	s.evict()
	s.latest = append(s.latest, key)
	return cards, nil
}

// maxHeld is how many events of steps are held: a hundred megabytes.
const maxHeld = 2 << 20

// evict forgets the runs that were not asked about for the longest time, if too
// many are held.
func (s *simulations) evict() {
	held := 0
	for i, key := range slices.Backward(s.latest) {
		if held += s.runs[key].Events(); held <= maxHeld {
			continue
		}
		for _, old := range s.latest[:i+1] {
			s.runs[old].Discard()
			delete(s.runs, old)
		}
		s.latest = s.latest[i+1:]
		return
	}
}

// forget gives up the steps that were run.
func (s *simulations) forget() {
	for _, cards := range s.runs {
		cards.Discard()
	}
}

// seen is a run on some card of a generation: its kernels are those of others,
// and only their scratch memory differs.
type seen struct {
	generation int // the first number of the compute capability
	run
}

// mayFit reports whether no bound says that a candidate does not fit a site.
func (p *planner) mayFit(c *candidate, at *site) bool {
	return float64(p.atLeast(at.card, c.run())) <= slack*float64(at.limit)
}

// atLeast is what a run takes on a card: what it was seen to take on another one
// of its kind, or its outline.
func (p *planner) atLeast(card *gpu.Card, r run) bytesize.Bytes {
	if peak, ok := p.peaks.Load(seen{card.ComputeCapability.Major, r}); ok {
		return peak.(bytesize.Bytes)
	}
	return r.outline.needs(r.batch, r.passes)
}

// option is what fits at a site; without what it took, what may fit.
func (p *planner) option(s *site, c *candidate, t *took) (*Option, error) {
	w, err := p.workload(c.setup, c.batch, c.passes)
	if err != nil {
		return nil, err
	}
	w.GPU = s.card.ID
	o := Option{Workload: w, Simulated: t != nil, Trains: c.trains, Changes: c.allChanges(), Command: p.command(c, s.card)}
	if t == nil {
		o.Peak = Memory{c.needs(), c.needs(), s.limit}
		return p.newOption(s, o, c.seconds), nil
	}
	o.Peak, o.Verdict = Memory{t.allocated, t.reserved, s.limit}, t.verdict
	return p.newOption(s, o, t.seconds), nil
}

// newOption completes what is known of an option.
func (p *planner) newOption(s *site, o Option, each predict.Seconds) *Option {
	o.GPU, o.GPUName, o.GPUs, o.Card, o.Price = s.card.ID, s.card.Name, s.gpus, s.card, s.price
	o.Setup, o.Batch, o.Passes = textOf(o.Changes), o.Workload.Batch, int64(o.Workload.Accumulate)
	each = each.Fed(p.loading(o.Batch * o.Passes))
	o.Speed, o.Recipe = p.speed(each), recipe.New(o.Workload)
	o.Days, o.Dollars = p.bill(s, each)
	o.KWh, o.Off = steptime.KWh(s.card, o.Days*24*3600*float64(s.gpus)), each.Off()
	o.seconds = each
	return &o
}

// loading is how long the loader of a process takes for samples.
func (p *planner) loading(samples int64) float64 { return float64(samples) * p.q.LoaderSeconds }

// allChanges are the changes with the split of the batch.
func (c *candidate) allChanges() []change.Change {
	made := c.made()
	if c.passes > 1 {
		made = append(made, change.Split(c.batch, c.passes))
	}
	return made
}

// needs is what a candidate needs at least.
func (c *candidate) needs() bytesize.Bytes { return c.outline.needs(c.batch, c.passes) }

// speed is zero where it is not known how long a step takes.
func (p *planner) speed(s predict.Seconds) Speed {
	if s.Total() == 0 {
		return Speed{}
	}
	out := Speed{
		StepSeconds: s.Total(), WaitingSeconds: s.Waiting, Efficiency: s.Efficiency(),
		SamplesPerSecond: float64(p.q.GlobalBatch) / s.Total(),
	}
	if p.readsText() {
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
