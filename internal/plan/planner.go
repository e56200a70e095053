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
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// planner makes one plan. It goes in three steps. Ways to train are outlined:
// two small batches of each on one card say how long any batch takes on any
// card, and what memory it needs at least. Then, for every card and number of
// GPUs, they are simulated from the fastest on until one fits. Of what fits the
// cheapest, the fastest and the simplest are chosen; these are looked for first, so
// that they are simulated even if there is no effort left for the others.
type planner struct {
	q       Question
	base    *workload.Workload // the question as it is
	samples float64

	counts   []int64    // of GPUs, 1 first
	outlines []*outline // of setups that can be modelled
	sites    []*site
	groups   [][][]*site // with as many GPUs that train the same, by kinds of cards
	simplest *Option     // nil if nothing fits

	effort    *effort.Effort // of simulations
	simulated atomic.Int64
	peaks     sync.Map // of allocated memory, by kind of card and run
	homes     sync.Map // of parameters, by workload

	telling     sync.Mutex
	progress    func(done, of int)
	done, parts int
}

// site is a card, so many of them, and what is trained on them.
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
	took       *took      // nil if there was no effort left for simulating it
	misfit     *candidate // if nothing fits, what needs the least

	misfitPrint *predict.Footprint // nil if there was no effort left for simulating it
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
	p := &planner{q: q, base: base, samples: q.samples(base), effort: q.Effort, progress: func(int, int) {}}
	for n := int64(1); n <= q.MaxGPUs && n <= p.mostUseful(); n *= 2 {
		p.counts = append(p.counts, n)
	}
	p.findSites()
	p.groupSites()
	return p, nil
}

// mostUseful is the largest number of GPUs that the global batch has samples
// for, where each has data of its own.
func (p *planner) mostUseful() int64 { return max(p.q.GlobalBatch, gpu.MachineGPUs) }

// samples are how many there are to train on.
func (q *Question) samples(w *workload.Workload) float64 {
	switch {
	case q.Samples > 0:
		return q.Samples
	case w.TakesImages():
		return defaultImages
	case q.Tokens > 0:
		return q.Tokens / float64(w.Sequence)
	default:
		return defaultTokens / float64(w.Sequence)
	}
}

// ncclReserve is what NCCL takes of a card beside PyTorch's allocator: 585 MB
// for one communicator on an H200.
const ncclReserve = 585e6

func (p *planner) findSites() {
	for _, h := range p.q.Cards {
		most := h.Card.MostGPUs()
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

// outline is a setup with what bounds its batches, on the reference card.
type outline struct {
	*setup
	*predict.Outline
}

// seconds are how long an update takes on a card.
func (o *outline) seconds(card *gpu.Card, batch, passes int64) predict.Seconds {
	return o.Timing(batch).Seconds(card, o.parallel, passes)
}

// reference is the card that setups are outlined on. Its kernels ask for the
// least scratch memory of all that have flash attention, so that a bound of it
// is one for others, too.
const reference = "a100-80gb"

// estimate outlines all setups.
func (p *planner) estimate(ctx context.Context) error {
	card, err := gpu.Find(reference)
	if err != nil {
		return err
	}
	setups := p.distinctSetups()
	p.parts = len(setups) + bestWays
	for _, group := range p.groups {
		p.parts += len(group)
	}
	outlines, errs := make([]*outline, len(setups)), make([]error, len(setups))
	others, sharing := p.bySharing(setups)
	for _, which := range [][]int{others, sharing} {
		known := slices.Clone(outlines)
		err = inParallel(ctx, predict.AtOnce(p.base), len(which), func(n int) error {
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
		if err = cmp.Or(err, p.q.Effort.Err()); err != nil {
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
	for _, s := range p.sites {
		s.candidates = p.candidatesAt(s)
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
	o, err := predict.NewOutline(w, card, p.q.Effort)
	if err != nil {
		return nil, err
	}
	return &outline{s, o}, nil
}

// homesOf finds the homes of a setup's parameters, once for all numbers of GPUs and
// batches; none if nobody asks for them.
func (p *planner) homesOf(s *setup, card *gpu.Card) (predict.Homes, error) {
	d := p.draft(s, 1, 1)
	if _, quantized := d["quantize"]; !quantized && !s.sharesParameters() {
		return nil, nil
	}
	delete(d, "parallel")
	key, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("write a workload: %w", err)
	}
	find, _ := p.homes.LoadOrStore(string(key), sync.OnceValues(func() (predict.Homes, error) {
		w, err := d.WorkloadWithin(p.effort)
		if err != nil {
			return nil, err
		}
		return predict.FindHomes(w, card, p.effort)
	}))
	return find.(func() (predict.Homes, error))()
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
			out = append(out, &outline{&s, o.Outline})
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
