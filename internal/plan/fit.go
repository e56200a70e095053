package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/recipe"
	"memorymark/internal/workbudget"
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
	Needs   bytesize.Bytes  `json:"needs_bytes" doc:"as it is; 0 if emulated steps ran out of memory, for then it is not known"`
	Limit   bytesize.Bytes  `json:"limit_bytes"` // what PyTorch may hold
	Margin  bytesize.Bytes  `json:"margin_bytes" doc:"what must be left of the limit for fits: 2 % of the card, and at least 300 MiB"`
	// Options are the smallest sets of changes with which it fits, the preferred
	// first: those that leave the margin, then those that cost the least in quality,
	// then the fastest. None if nothing helps.
	Options []*Option `json:"options"`
	Reason  string    `json:"reason,omitempty"` // why it does not fit as it is
	// Least is the set of changes that needs the least, where nothing fits.
	Least *Misfit `json:"least,omitempty"`
	// Notes say what to know of steps that PyTorch ran, and what was not tried.
	Notes []string `json:"notes,omitempty"`
}

// FitQuestion asks how to make a workload fit a card.
type FitQuestion struct {
	Draft   workload.Draft
	Card    *gpu.Card
	Reserve bytesize.Bytes     // memory to keep free in addition to the context
	Full    bool               // train all weights: no adapters
	Work    *workbudget.Budget // what it may take; nil is without bound
	// Probe runs the steps of a family that is not modelled; nil predicts them.
	Probe change.Prober
}

// Each probe takes seconds, so what is tried with them is bounded: single changes of the
// table and pairs, which are 27 on a card with bfloat16 if no smaller batch fits.
const (
	MaxProbes     = 28
	maxProbedKeys = 2
)

// MakeFit finds the smallest sets of changes with which a workload fits a card. The
// batch of an update stays, and so does what the draft says.
func MakeFit(ctx context.Context, q FitQuestion) (*Fit, error) {
	base, err := runnable(q.Draft, q.Probe != nil)
	if err != nil {
		return nil, err
	}
	if base.Parallel != nil {
		return nil, fmt.Errorf("parallel is %s; a plan chooses it, so leave it out", base.Parallel.Kind)
	}
	if q.Work == nil {
		q.Work = unbounded(ctx)
	}
	p, err := newPlanner(Question{
		Work: q.Work, Draft: q.Draft, Cards: []Holding{{Card: q.Card}}, MaxGPUs: 1, Full: q.Full, Reserve: q.Reserve, GlobalBatch: base.Batch * int64(base.Accumulate),
	}, base)
	if err != nil {
		return nil, err
	}
	at := p.sites[0]
	out := &Fit{
		Model: base.Name(), GPU: at.card.ID, GPUName: at.card.Name, Batch: p.q.GlobalBatch,
		Limit: at.limit, Margin: at.margin, Options: []*Option{},
	}
	if err := p.asItIs(out, at, q.Probe); err != nil || out.Fits {
		return out, err
	}
	asked := change.Question{
		Draft: q.Draft, Card: q.Card, Limit: at.limit, Margin: at.margin, Given: change.Given(q.Draft), Full: q.Full, Work: q.Work,
	}
	if q.Probe == nil {
		asked.Forms = []change.Form{recipe.AsWritten, change.AsAsked}
	} else {
		asked.Probe, asked.Probes, asked.Most = q.Probe, MaxProbes, maxProbedKeys
	}
	found, err := change.Least(asked)
	if err != nil {
		return nil, err
	}
	out.note(found)
	for _, set := range found.Sets {
		out.Options = append(out.Options, p.setOption(at, set))
	}
	if least := found.Nearest; least != nil {
		out.Least = p.nearest(at, least)
	}
	return out, nil
}

// asItIs runs the workload without a change.
func (p *planner) asItIs(out *Fit, at *site, run change.Prober) error {
	if run == nil {
		run = change.Predicting(at.card, p.q.Work)
	}
	steps, err := run(change.Trial{Workload: p.base.WithLimit(out.Limit), Margin: at.margin})
	if err != nil {
		return err
	}
	out.Fits, out.Verdict, out.Needs = steps.Verdict != predict.DoesNotFit, steps.Verdict, steps.Peak.PeakReserved
	out.Reason, out.Notes = steps.Reason, steps.Notes
	return nil
}

// note adds what a search with probes left out, and what is to be known of the steps of
// options in addition to that of the workload's own.
func (f *Fit) note(found *change.Findings) {
	for _, set := range found.Sets {
		for _, note := range set.Notes {
			if !slices.Contains(f.Notes, note) {
				f.Notes = append(f.Notes, note)
			}
		}
	}
	for _, failed := range found.Failed {
		why, _, _ := strings.Cut(failed.Err.Error(), "\n") // Python's stack follows
		f.Notes = append(f.Notes, fmt.Sprintf("%s was not tried: %s", change.Labels(failed.Changes), why))
	}
	if found.Untried > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d more sets of changes were not tried: on an emulated card the search ends after %d", found.Untried, MaxProbes))
	}
}

// setOption is a set of changes as a way to train.
func (p *planner) setOption(at *site, set change.Set) *Option {
	d := change.Apply(p.q.Draft, set.Changes)
	if p.base.Unmodelled == "" {
		d = recipe.AsWritten(d)
	}
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
