package analysis

import (
	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Bill is how fast training is at the batch that is recommended, and what it
// costs. Speeds are those of one GPU.
type Bill struct {
	Batch int64 `json:"batch_size"`
	Throughput
	// Dollars are absent where there is no price.
	PerMillionSamples *float64 `json:"usd_per_million_samples,omitempty"`
	PerMillionTokens  *float64 `json:"usd_per_million_tokens,omitempty"` // of text
	// Run is absent unless the question says how long a run is.
	Run *Run `json:"run,omitempty"`
}

// Run is a whole run of training.
type Run struct {
	Tokens  float64  `json:"tokens,omitempty"`
	Samples float64  `json:"samples,omitempty"` // of what has no tokens
	Hours   float64  `json:"hours"`             // by the clock, on all GPUs together
	Dollars *float64 `json:"dollars,omitempty"` // for all GPUs
}

// setBill says what training costs at the batch that is recommended.
func (a *Answer) setBill(q Question, w *workload.Workload) {
	batch := a.Recommended
	if batch == 0 {
		batch = a.OptimalBatch
	}
	speed := a.result(batch).Throughput
	if speed.SamplesPerSecond == 0 {
		return
	}
	a.Bill = &Bill{
		Batch: batch, Throughput: speed,
		PerMillionSamples: a.perMillion(speed.SamplesPerSecond), PerMillionTokens: a.perMillion(speed.TokensPerSecond),
	}
	gpus := 1.0
	if w.Parallel != nil {
		gpus = float64(w.Parallel.GPUs)
	}
	run := Run{Tokens: float64(q.RunTokens), Samples: float64(q.RunSamples)}
	switch {
	case q.RunTokens > 0 && speed.TokensPerSecond > 0:
		run.Hours, run.Samples = run.Tokens/speed.TokensPerSecond/gpus/3600, 0
	case q.RunSamples > 0:
		run.Hours, run.Tokens = run.Samples/speed.SamplesPerSecond/gpus/3600, 0
	default:
		return
	}
	if a.PricePerHour != nil {
		dollars := figure.Round(run.Hours*gpus**a.PricePerHour, 2)
		run.Dollars = &dollars
	}
	run.Hours = figure.Significant(run.Hours, 4)
	a.Bill.Run = &run
}

// CardPrice is what a card costs.
type CardPrice struct {
	PricePerHour *float64 `json:"price_per_hour,omitempty"`
	PriceSource  string   `json:"price_source,omitempty"`
}

// setPrice takes the price that was given, which may be 0, or the catalog's.
func (p *CardPrice) setPrice(given *float64, card *gpu.Card) {
	switch {
	case given != nil:
		p.PricePerHour = given
	case card.Price != nil:
		p.PricePerHour = &card.Price.USDPerHour
		p.PriceSource = card.Price.Provider + ", " + card.Price.AsOf
	}
}

// perMillion is what a million of something costs, nil where that is not known.
func (p *CardPrice) perMillion(perSecond float64) *float64 {
	if p.PricePerHour == nil || perSecond == 0 {
		return nil
	}
	dollars := figure.Round(*p.PricePerHour/3600*1e6/perSecond, 4)
	return &dollars
}
