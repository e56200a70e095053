package analysis

import (
	"context"
	"sync"

	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// Outlook is how a workload does on a card, in short. Its parts are absent
// where no batch trains; Error then says why.
type Outlook struct {
	OptimalBatch      int64    `json:"optimal_batch_size"` // 0 if not even a batch of 1 trains
	Recommended       int64    `json:"recommended_batch_size,omitempty"`
	Memory            int64    `json:"memory_bytes,omitempty"` // at the optimal batch
	Throughput                 // at the recommended batch
	PerMillionSamples *float64 `json:"usd_per_million_samples,omitempty"`
	PerMillionTokens  *float64 `json:"usd_per_million_tokens,omitempty"` // of text
	Missing           int64    `json:"missing_bytes,omitempty" doc:"memory that the smallest batch needs and the card does not have"`
	Error             string   `json:"error,omitempty"`
}

// outlook answers in short.
func (p *planner) outlook() Outlook {
	var o Outlook
	err := p.fill(&o)
	if spent := p.Work.Err(); spent != nil {
		return Outlook{Error: spent.Error()}
	}
	if err != nil {
		o.Error = err.Error()
	}
	return o
}

func (p *planner) fill(o *Outlook) (err error) {
	if o.OptimalBatch, err = p.largest(p.run); err != nil {
		return err
	}
	if o.OptimalBatch == 0 {
		e, err := p.whyTooSmall()
		if err != nil {
			return err
		}
		o.Missing = int64(max(0, e.Needs-e.Limit)) // 0 where there is enough, but in pieces
		return e
	}
	if o.Recommended, _, err = p.recommend(o.OptimalBatch); err != nil {
		return err
	}
	optimal, err := p.look(o.OptimalBatch)
	if err != nil {
		return err
	}
	o.Memory = optimal.Memory
	recommended, err := p.look(o.Recommended)
	if err != nil {
		return err
	}
	o.Throughput = recommended.Throughput
	var price CardPrice
	price.setPrice(p.PricePerHour, p.Card)
	o.PerMillionSamples, o.PerMillionTokens = price.perMillion(o.SamplesPerSecond), price.perMillion(o.TokensPerSecond)
	return nil
}

// OnCard is how a workload does on one of several cards.
type OnCard struct {
	GPU   string `json:"gpu"` // its id
	Name  string `json:"gpu_name"`
	Total int64  `json:"gpu_total_bytes"`
	CardPrice
	Outlook
}

// CompareCards says how a workload does on each card, in the order given. A
// price per hour of the request would be that of one card; it does not count.
// Each row is worked out by around, when and where it likes; nil does it at once,
// on as many cores as memory allows.
func CompareCards(ctx context.Context, r Request, cards []*gpu.Card, around Around) ([]OnCard, error) {
	out := make([]OnCard, len(cards))
	r.PricePerHour = nil
	err := onCores(ctx, predict.MaxConcurrent(r.Workload, false), len(cards), around, func(i int) {
		c := cards[i]
		out[i] = OnCard{GPU: c.ID, Name: c.Name, Total: int64(c.Memory.Bytes)}
		out[i].setPrice(nil, c)
		at := r
		at.Card = c
		out[i].Outlook = outlookOf(at)
	})
	return out, err
}

func outlookOf(r Request) Outlook {
	p, err := newPlanner(r)
	if err != nil {
		return Outlook{Error: err.Error()}
	}
	return p.outlook()
}

// GridSettings are what a grid varies. An empty list stands for all that is worth
// a look.
type GridSettings struct {
	Precisions    []workload.Precision
	Optimizers    []workload.Optimizer
	Checkpointing []bool
}

// WithSettings is how a workload does in one cell of a grid.
type WithSettings struct {
	Precision     workload.Precision `json:"precision"`
	Optimizer     workload.Optimizer `json:"optimizer"`
	Checkpointing bool               `json:"checkpointing"`
	Outlook
}

// CompareSettings says how a workload does with every combination of settings:
// precisions, in each the optimizers, in each without and with checkpointing.
func CompareSettings(ctx context.Context, r Request, s GridSettings, around Around) ([]WithSettings, error) {
	cells := s.cells(r.Card)
	err := onCores(ctx, predict.MaxConcurrent(r.Workload, false), len(cells), around, func(i int) {
		w := *r.Workload
		w.Precision, w.Optimizer, w.Checkpointing = cells[i].Precision, cells[i].Optimizer, cells[i].Checkpointing
		if err := w.CheckOptimizer(); err != nil {
			cells[i].Error = err.Error()
			return
		}
		at := r
		at.Workload = &w
		cells[i].Outlook = outlookOf(at)
	})
	return cells, err
}

func (s GridSettings) cells(card *gpu.Card) []WithSettings {
	if len(s.Precisions) == 0 {
		s.Precisions = precisionsOf(card)
	}
	if len(s.Optimizers) == 0 {
		s.Optimizers = []workload.Optimizer{workload.AdamW, workload.SGDMomentum, workload.SGD}
	}
	if len(s.Checkpointing) == 0 {
		s.Checkpointing = []bool{false, true}
	}
	var out []WithSettings
	for _, p := range s.Precisions {
		for _, o := range s.Optimizers {
			for _, c := range s.Checkpointing {
				out = append(out, WithSettings{Precision: p, Optimizer: o, Checkpointing: c})
			}
		}
	}
	return out
}

// precisionsOf are the precisions that a card has in hardware.
func precisionsOf(card *gpu.Card) []workload.Precision {
	out := []workload.Precision{workload.FP32}
	if card.HasTF32() {
		out = append(out, workload.TF32)
	}
	if card.HasBF16() {
		out = append(out, workload.AMPBF16, workload.AMPFP16, workload.BF16)
	} else {
		out = append(out, workload.AMPFP16)
	}
	return out
}

// Around does some work, when and where it likes. Its error is that it did not.
type Around func(ctx context.Context, work func() error) error

// onCores calls do for 0 to n-1, atOnce of them at the same time. When the context ends, or
// around fails, it does not begin another.
func onCores(ctx context.Context, atOnce, n int, around Around, do func(i int)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if around == nil {
		around = func(_ context.Context, work func() error) error { return work() }
	}
	next := make(chan int)
	var all sync.WaitGroup
	for range min(atOnce, n) {
		all.Go(func() {
			for i := range next {
				if err := around(ctx, func() error { do(i); return nil }); err != nil {
					stop(err)
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}
