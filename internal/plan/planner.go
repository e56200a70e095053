package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// planner makes one plan. It goes in three steps. Ways to train are outlined:
// two small batches of each on one card say how long any batch takes on any
// card, and what memory it needs at least. Then, for every card and number of
// GPUs, they are simulated from the fastest on until one fits. Of what fits the
// cheapest, the fastest and the simplest are chosen; these are looked for first, so
// that they are simulated even if there is no work left for the others.
type planner struct {
	q       Question
	base    *workload.Workload // the question as it is
	samples float64

	counts   []int64    // of GPUs, 1 first
	outlines []*outline // of setups that can be modelled
	sites    []*site
	groups   [][][]*site // with as many GPUs that train the same, by kinds of cards
	simplest *Option     // nil if nothing fits

	work      *workbudget.Budget // of simulations
	simulated atomic.Int64
	runs      *runs    // nil if steps are predicted
	peaks     sync.Map // of allocated memory, by kind of card and run
	owners    sync.Map // of parameters, by workload

	telling     sync.Mutex
	progress    func(done, of int)
	done, parts int
}

// site is a card, a number of them, and what is trained on them.
type site struct {
	card   *gpu.Card
	gpus   int64
	trains change.Trains
	limit  bytesize.Bytes
	margin bytesize.Bytes // that is to be left of it
	price  *Price

	candidates []*candidate // the fastest first
	searched   bool
	found      *candidate // the fastest that fits with a margin, or else without one
	took       *took      // nil if there was no work left for simulating it
	misfit     *candidate // if nothing fits, what needs the least

	misfitProcess *predict.Process // nil if there was no work left for simulating it
}

// ErrNoCards says that a question names no cards.
var ErrNoCards = errors.New("there are no cards to plan for; name some from memorymark gpus")

func newPlanner(q Question, base *workload.Workload) (*planner, error) {
	if q.MaxGPUs == 0 {
		q.MaxGPUs = DefaultMaxGPUs
	}
	if q.GlobalBatch == 0 {
		q.GlobalBatch = DefaultGlobalBatch
	}
	if len(q.Cards) == 0 {
		return nil, ErrNoCards
	}
	if base.Phase != workload.Train {
		return nil, fmt.Errorf("phase is %q; a plan is for training, so it must be %s", base.Phase, workload.Train)
	}
	p := &planner{q: q, base: base, samples: q.samples(base), work: q.Work, progress: func(int, int) {}}
	if q.Emulation != nil {
		p.runs, p.q.MaxGPUs = &runs{Emulation: q.Emulation, took: make(map[placed]*took)}, 1
	}
	for n := int64(1); n <= p.q.MaxGPUs && n <= p.maxUseful(); n *= 2 {
		p.counts = append(p.counts, n)
	}
	p.findSites()
	p.groupSites()
	return p, nil
}

// maxUseful is the largest number of GPUs that the global batch has samples
// for, where each has data of its own.
func (p *planner) maxUseful() int64 { return max(p.q.GlobalBatch, gpu.MachineGPUs) }

// samples are how many there are to train on.
func (q *Question) samples(w *workload.Workload) float64 {
	switch {
	case q.Samples > 0:
		return float64(q.Samples)
	case q.Tokens > 0 && !w.TakesImages():
		return float64(q.Tokens) / float64(w.Sequence)
	case w.TakesImages() || w.Unmodelled != "":
		return defaultSamples
	default:
		return defaultTokens / float64(w.Sequence)
	}
}

// readsText reports whether samples are counted in tokens: what a family reads that is
// not modelled, the question says.
func (p *planner) readsText() bool {
	return !p.base.TakesImages() && (p.base.Unmodelled == "" || p.q.Tokens > 0)
}

// ncclReserve is what NCCL takes of a card outside of PyTorch's allocator: 585 MB
// for one communicator on an H200.
const ncclReserve = 585e6

func (p *planner) findSites() {
	for _, h := range p.q.Cards {
		most := h.Card.MaxGPUs()
		if h.Count > 0 {
			most = min(most, h.Count)
		}
		for _, n := range p.counts {
			if n > most {
				break
			}
			limit := predict.Limit(p.base, h.Card) - p.q.Reserve
			if n > 1 {
				limit -= ncclReserve
			}
			for _, t := range []change.Trains{change.AllWeights, change.Adapters} {
				p.sites = append(p.sites, &site{card: h.Card, gpus: n, trains: t, limit: limit, margin: predict.MarginOf(p.base, h.Card), price: p.q.priceOf(h)})
			}
		}
	}
}

// outline is a setup with what bounds its batches, on the reference card: predicted, or
// a sketch.
type outline struct {
	*setup
	*predict.Outline
	sketch *Sketch
}

// seconds are how long an update takes on a card.
func (o *outline) seconds(card *gpu.Card, batch, passes int64) predict.Seconds {
	if o.sketch != nil {
		return o.sketch.seconds(card, batch, passes)
	}
	return o.Timing(batch).Seconds(card, o.parallel, passes)
}

// needs is what a batch takes at least, with a number of passes.
func (o *outline) needs(batch, passes int64) bytesize.Bytes {
	if o.sketch != nil {
		return o.sketch.needs(batch)
	}
	return o.NeedsWith(batch, passes)
}

// parameters are how many the model has.
func (o *outline) parameters() int64 {
	if o.sketch != nil {
		return o.sketch.Parameters
	}
	return o.Parameters
}

// reference is the card that setups are outlined on. Its kernels ask for the
// least scratch memory of all that have flash attention, so that a bound of it
// is one for others, too.
const reference = "a100-80gb"

// estimate outlines all setups, and orders the ways to train at each site.
func (p *planner) estimate(ctx context.Context) error {
	card, err := gpu.Find(reference)
	if err != nil {
		return err
	}
	if p.runs != nil {
		err = p.sketch(ctx, card)
	} else {
		err = p.predict(ctx, card)
	}
	for _, s := range p.sites {
		s.candidates = p.candidatesAt(s)
	}
	return err
}

// predict outlines all setups without running them.
func (p *planner) predict(ctx context.Context, card *gpu.Card) (err error) {
	setups := p.distinctSetups()
	p.parts = len(setups) + bestWays
	for _, group := range p.groups {
		p.parts += len(group)
	}
	outlines, errs := make([]*outline, len(setups)), make([]error, len(setups))
	others, sharing := p.bySharing(setups)
	for _, which := range [][]int{others, sharing} {
		known := slices.Clone(outlines)
		err = inParallel(ctx, predict.MaxConcurrent(p.base, false), len(which), func(n int) error {
			defer p.step()
			i := which[n]
			if p.fitsNowhere(setups[i], known) {
				return nil
			}
			return p.q.piece(ctx, func() error {
				outlines[i], errs[i] = p.outline(setups[i], card)
				return nil
			})
		})
		if err = cmp.Or(err, p.q.Work.Err()); err != nil {
			return err
		}
	}
	for _, o := range outlines {
		if o != nil {
			p.outlines = append(p.outlines, p.alike(o)...)
		}
	}
	if len(p.outlines) == 0 { // the question itself cannot be predicted
		return errors.Join(errs...)
	}
	return nil
}

// bySharing are the places of setups in which each GPU has the whole state of the
// optimizer or shares it with its parameters, and of those that share the state alone.
func (p *planner) bySharing(setups []*setup) (others, sharing []int) {
	for i, s := range setups {
		if s.kind() == workload.ZeRO1 {
			sharing = append(sharing, i)
		} else {
			others = append(others, i)
		}
	}
	return others, sharing
}

// fitsNowhere reports whether a setup that shares the optimizer's state among GPUs
// needs more than any of them has for the rest, by the outline of the one that shares
// nothing.
func (p *planner) fitsNowhere(s *setup, known []*outline) bool {
	i := slices.IndexFunc(known, func(o *outline) bool {
		return o != nil && o.kind() == workload.DDP && slices.EqualFunc(o.chosen, s.chosen, func(a, b change.Row) bool { return a.Label == b.Label })
	})
	if i < 0 || s.kind() != workload.ZeRO1 {
		return false
	}
	needs := float64(known[i].NeedsWithoutState())
	return !slices.ContainsFunc(p.sites, func(at *site) bool { return at.gpus == s.gpus && s.on(at.card) && needs <= slack*float64(at.limit) })
}

func (p *planner) outline(s *setup, card *gpu.Card) (*outline, error) {
	w, err := p.workload(s, 1, 1)
	if err != nil {
		return nil, err
	}
	o, err := predict.NewOutline(w, card, p.q.Work)
	if err != nil {
		return nil, err
	}
	return &outline{setup: s, Outline: o}, nil
}

// ownersOf finds the owners of a setup's parameters, once for all numbers of GPUs and
// batches; none if they are not needed.
func (p *planner) ownersOf(s *setup, card *gpu.Card) (predict.Owners, error) {
	d := p.draft(s, 1, 1)
	if _, quantized := d["quantize"]; !quantized && !s.sharesParameters() {
		return nil, nil
	}
	delete(d, "parallel")
	key, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("write a workload: %w", err)
	}
	find, _ := p.owners.LoadOrStore(string(key), sync.OnceValues(func() (predict.Owners, error) {
		w, err := d.WorkloadWithin(p.work)
		if err != nil {
			return nil, err
		}
		return predict.FindOwners(w, card, p.work)
	}))
	return find.(func() (predict.Owners, error))()
}

// distinctSetups are those that need an outline of their own, on as many GPUs
// as there are sites for.
func (p *planner) distinctSetups() []*setup {
	var out []*setup
	seen := make(map[string]bool)
	for _, n := range p.counts {
		if !slices.ContainsFunc(p.sites, func(s *site) bool { return s.gpus == n }) {
			continue
		}
		for _, s := range p.setups(n) {
			if !slices.ContainsFunc(p.q.Cards, func(h Holding) bool { return s.on(h.Card) }) {
				continue
			}
			key := fmt.Sprint(s.String(), n)
			if s.anyNumber() {
				key = s.String()
			}
			if !seen[key] {
				out = append(out, s)
			}
			seen[key] = true
		}
	}
	return out
}

// alike are the outlines of a setup on as many GPUs as make no difference to
// one of them.
func (p *planner) alike(o *outline) []*outline {
	out := []*outline{o}
	for _, n := range p.counts {
		if o.anyNumber() && n > o.gpus {
			s, shared := *o.setup, *o.parallel
			s.gpus, s.ways, shared.GPUs = n, n, n
			s.parallel = &shared
			out = append(out, &outline{setup: &s, Outline: o.Outline})
		}
	}
	return out
}

// step says that one of the parts is done.
func (p *planner) step() {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.done++
	p.progress(p.done, p.parts)
}
