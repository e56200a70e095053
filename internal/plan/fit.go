package plan

import (
	"context"
	"fmt"

	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/recipe"
	"memorymark/internal/workload"
)

// Fit is what it takes to make a workload fit one card.
type Fit struct {
	Model   string          `json:"model"`
	GPU     string          `json:"gpu"`
	GPUName string          `json:"gpu_name"`
	Batch   int64           `json:"batch"` // samples of an update
	Fits    bool            `json:"fits"`  // as it is
	Verdict predict.Verdict `json:"verdict" enum:"fits,tight,does not fit" doc:"as it is; tight: it fits, and less than the margin is left"`
	Needs   bytesize.Bytes  `json:"needs_bytes"`
	Limit   bytesize.Bytes  `json:"limit_bytes"` // what PyTorch may hold
	Margin  bytesize.Bytes  `json:"margin_bytes" doc:"what must be left of the limit for fits: 2 % of the card, and at least 300 MiB"`
	// Options are the smallest sets of changes with which it fits, the preferred
	// first: those that leave the margin, then those that cost the least in quality,
	// then the fastest. None if nothing helps.
	Options []*Option `json:"options"`
	Reason  string    `json:"reason,omitempty"` // why it does not fit as it is
	// Least is the set of changes that needs the least, where nothing fits.
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

// MakeFit finds the smallest sets of changes with which a workload fits a card. The
// batch of an update stays, and so does what the draft says.
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
	at := p.sites[0]
	out := &Fit{
		Model: base.Name(), GPU: at.card.ID, GPUName: at.card.Name, Batch: p.q.GlobalBatch,
		Limit: at.limit, Margin: at.margin, Options: []*Option{},
	}
	if err := p.asItIs(out, at); err != nil || out.Fits {
		return out, err
	}
	found, err := change.Least(change.Question{
		Draft: q.Draft, Card: q.Card, Limit: at.limit, Margin: at.margin, Given: change.Given(q.Draft), Full: q.Full, Effort: q.Effort,
		Forms: []change.Form{recipe.AsWritten, change.AsAsked},
	})
	if err != nil {
		return nil, err
	}
	for _, set := range found.Sets {
		out.Options = append(out.Options, p.setOption(at, set))
	}
	if least := found.Nearest; least != nil {
		out.Least = p.nearest(at, least)
	}
	return out, nil
}

// asItIs predicts the workload without a change.
func (p *planner) asItIs(out *Fit, at *site) error {
	w := p.base.WithLimit(out.Limit)
	s, err := predict.NewRunner(w, at.card).Within(p.q.Effort).Simulate(w.Batch)
	if err != nil {
		return err
	}
	out.Fits, out.Verdict, out.Needs = s.Fits(), s.Verdict(at.margin), s.Peak().PeakReserved
	if oom := s.OutOfMemory(); oom != nil {
		out.Reason = oom.Reason()
	}
	return nil
}

// setOption is a set of changes as a way to train.
func (p *planner) setOption(at *site, set change.Set) *Option {
	d := recipe.AsWritten(change.Apply(p.q.Draft, set.Changes))
	w := set.Workload
	d["batch"], d["accumulate"] = number(w.Batch), number(int64(w.Accumulate))
	return p.newOption(at, Option{
		Simulated: true, Workload: w, Trains: set.Trains, Changes: set.Changes,
		Peak:    Memory{set.Peak.PeakAllocated, set.Peak.PeakReserved, at.limit},
		Verdict: set.Verdict, Command: commandOf(d, at.card),
	}, predict.Seconds{Computing: set.StepSeconds})
}

// nearest is the set of changes that needs the least, and does not fit.
func (p *planner) nearest(at *site, set *change.Set) *Misfit {
	m := &Misfit{
		GPU: at.card.ID, GPUs: at.gpus, Trains: set.Trains, Needs: set.Peak.PeakReserved, Limit: at.limit, Setup: textOf(set.Changes),
	}
	m.Days, m.Dollars = p.bill(at, predict.Seconds{Computing: set.StepSeconds})
	m.Reason = fmt.Sprintf("%s with batch %d needs %v, and PyTorch may hold %v", m.Setup, set.Workload.Batch, m.Needs, at.limit)
	return m
}
