package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// Fit is what it takes to make a workload fit one card.
type Fit struct {
	Model   string         `json:"model"`
	GPU     string         `json:"gpu"`
	GPUName string         `json:"gpu_name"`
	Batch   int64          `json:"batch"` // samples of an update
	Fits    bool           `json:"fits"`  // as it is
	Needs   bytesize.Bytes `json:"needs_bytes"`
	Limit   bytesize.Bytes `json:"limit_bytes"` // what PyTorch may hold
	// Options are the smallest sets of changes with which it fits, the fastest
	// first; none if nothing helps.
	Options []*Option `json:"options"`
	Reason  string    `json:"reason,omitempty"` // why it does not fit as it is
	// Least is the way to train that needs the least, where nothing fits.
	Least *Misfit `json:"least,omitempty"`
}

// FitQuestion asks how to make a workload fit a card.
type FitQuestion struct {
	Draft   workload.Draft
	Card    *gpu.Card
	Reserve bytesize.Bytes // memory to keep free beside the context
	Full    bool           // train all weights: no adapters
	Effort  *effort.Effort // what it may take; nil is without bound
}

// MakeFit finds the smallest sets of changes with which a workload fits a card:
// those of its precision, checkpointing, optimizer and adapters, and splitting
// its batch. The batch of an update stays.
func MakeFit(ctx context.Context, q FitQuestion) (*Fit, error) {
	base, err := q.Draft.Workload()
	if err != nil {
		return nil, err
	}
	if base.Parallel != nil {
		return nil, fmt.Errorf("parallel is %s; a plan chooses it, so leave it out", base.Parallel.Kind)
	}
	if q.Effort == nil {
		q.Effort = unbounded(ctx)
	}
	p, err := newPlanner(Question{
		Effort: q.Effort, Draft: q.Draft, Cards: []Holding{{Card: q.Card}}, MaxGPUs: 1, Full: q.Full, Reserve: q.Reserve, GlobalBatch: base.Batch * int64(base.Accumulate),
	})
	if err != nil {
		return nil, err
	}
	card := q.Card
	out := &Fit{Model: base.Name(), GPU: card.ID, GPUName: card.Name, Batch: p.q.GlobalBatch, Limit: p.sites[0].limit, Options: []*Option{}}
	if err := p.asItIs(out, card); err != nil || out.Fits {
		return out, err
	}
	if err := p.estimate(ctx); err != nil {
		return nil, err
	}
	return out, p.leastChanges(ctx, out)
}

// asItIs predicts the workload without a change.
func (p *planner) asItIs(out *Fit, card *gpu.Card) error {
	w := p.base.WithLimit(out.Limit)
	s, err := predict.NewRunner(w, card).Within(p.q.Effort).Simulate(w.Batch)
	if err != nil {
		return err
	}
	out.Fits, out.Needs = s.Fits(), s.Peak().PeakReserved
	if oom := s.OutOfMemory(); oom != nil {
		out.Reason = oom.Reason()
	}
	return nil
}

// leastChanges looks at sets of one change, then of two, and so on until some
// fit.
func (p *planner) leastChanges(ctx context.Context, out *Fit) error {
	var tries []placed
	most := 0
	for _, s := range p.sites {
		for _, c := range s.candidates {
			tries = append(tries, placed{s, c})
			most = max(most, c.changesInAll())
		}
	}
	sims := p.newSimulations()
	for n := 1; n <= most && len(out.Options) == 0; n++ {
		found := make(map[string]bool) // by setup, the largest batch first
		for _, t := range tries {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if t.changesInAll() != n || found[t.String()] {
				continue
			}
			print, err := sims.fits(t.candidate, t.site)
			if err != nil {
				return err
			}
			if print == nil {
				continue
			}
			found[t.String()] = true
			o, err := p.option(t.site, t.candidate, print)
			if err != nil {
				return err
			}
			out.Options = append(out.Options, o)
		}
	}
	slices.SortStableFunc(out.Options, func(a, b *Option) int { return cmp.Compare(a.Speed.StepSeconds, b.Speed.StepSeconds) })
	if len(out.Options) == 0 && len(tries) > 0 {
		least := slices.MinFunc(tries, func(a, b placed) int { return cmp.Compare(a.Needs(a.batch), b.Needs(b.batch)) })
		least.site.misfit = least.candidate
		out.Least = &p.misfitsAt(least.site)[0]
	}
	return nil
}

// changesInAll counts splitting the batch, too.
func (c *candidate) changesInAll() int {
	if c.passes > 1 {
		return c.changes() + 1
	}
	return c.changes()
}

// allNames are the changes with splitting the batch.
func (c *candidate) allNames() []string {
	names := c.names()
	if c.passes > 1 {
		names = append(names, fmt.Sprintf("batch %d accumulated %d times", c.batch, c.passes))
	}
	return names
}
