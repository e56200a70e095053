// Package plan answers what a model should be trained on, and how: over cards,
// numbers of GPUs and ways to train, what fits, by dollars and by days. Every
// answer that it hands out was simulated; bounds only decide what need not be. If a
// plan may take only so much work, the best are simulated first, and what was not is
// marked.
package plan

import (
	"context"
	"fmt"
	"math"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/evidence"
	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/invalid"
	"memorymark/internal/predict"
	"memorymark/internal/recipe"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Question is what is to be planned.
type Question struct {
	// Draft is what is trained. A key that it has stays as it is; the others
	// are the plan's to choose.
	Draft workload.Draft
	Cards []Holding
	// MaxGPUs is how many GPUs may be used together; 0 is 64.
	MaxGPUs int64
	// GlobalBatch is the samples of an update; 0 is 64.
	GlobalBatch int64
	// Samples are how many there are to train on; 0 for Tokens, and of both 0 a
	// billion tokens, or a million samples of what is not known to be text.
	Samples, Tokens figure.Amount
	// Full leaves adapters out.
	Full bool
	// Within leaves out what costs more or takes longer; 0 is no bound.
	Within Budget
	// Reserve is memory to keep free on every card.
	Reserve bytesize.Bytes
	// LoaderSeconds is how long the loader of a process takes for a sample.
	LoaderSeconds float64
	// Prices are by card; nil are the catalog's.
	Prices Prices
	// Work is what the plan may take; nil for no bound.
	Work *workbudget.Budget
	// Emulation runs the steps of a family that is not modelled, on one GPU; nil
	// predicts them.
	Emulation Emulation
	// Piece runs a part of the plan when it is its turn; nil runs it at once.
	Piece func(ctx context.Context, do func() error) error
}

// Holding is a card and how many of them there are, 0 for as many as can be
// rented.
type Holding struct {
	Card  *gpu.Card
	Count int64
}

// Budget is what a plan may cost and take.
type Budget struct {
	Dollars float64 `json:"dollars,omitempty"`
	Days    float64 `json:"days,omitempty"`
}

// Plan is the answer.
type Plan struct {
	Model string `json:"model"`
	// Engine is Predicted, or Emulated if PyTorch ran the steps.
	Engine      evidence.Engine `json:"engine" enum:"predicted,emulated" doc:"emulated: PyTorch ran the steps, on cards that are not there"`
	Parameters  int64           `json:"parameters"`
	GlobalBatch int64           `json:"global_batch"`
	Samples     float64         `json:"samples"`
	Tokens      float64         `json:"tokens,omitempty"` // of text
	// Cheapest, Fastest and Simplest are places of Options. Whole is the cheapest
	// that trains all weights, where the cheapest does not.
	Cheapest *Option `json:"cheapest,omitempty"`
	Fastest  *Option `json:"fastest,omitempty"`
	Simplest *Option `json:"simplest,omitempty"`
	Whole    *Option `json:"cheapest_of_all_weights,omitempty"`
	// Balanced is that of the frontier with the least product of dollars and days.
	Balanced        *Option `json:"balanced,omitempty" doc:"of the frontier, that with the least product of dollars and days"`
	BalancedBecause string  `json:"balanced_because,omitempty" doc:"what it costs and saves against the cheapest"`
	// Options are the fastest way to train that fits, for each card and number
	// of GPUs, all weights or adapters; the cheapest first.
	Options []*Option `json:"options"`
	Misfits []Misfit  `json:"misfits"`
	Notes   []string  `json:"notes,omitempty"`
	// Considered are ways to train that were looked at, Simulated those of which
	// steps were run; of the others a bound says that they do not fit or are
	// slower than one that does.
	Considered int     `json:"considered"`
	Simulated  int     `json:"simulated"`
	Seconds    float64 `json:"seconds"`
}

// Option is a way to train that fits.
type Option struct {
	// Simulated says that its steps were simulated, as all are if there is work for
	// it. Otherwise it may fit: the memory is a lower bound.
	Simulated bool `json:"simulated"`
	// Frontier says that no other option is both cheaper and faster.
	Frontier bool `json:"frontier,omitempty" doc:"no other option that was simulated is both cheaper and faster"`

	GPU      string             `json:"gpu"` // its id
	GPUName  string             `json:"gpu_name"`
	GPUs     int64              `json:"gpus"`
	Setup    string             `json:"setup"`   // in a few words
	Trains   change.Trains      `json:"trains"`  // all weights, or adapters
	Changes  []change.Change    `json:"changes"` // from what was asked about
	Batch    int64              `json:"batch"`   // of one GPU
	Passes   int64              `json:"accumulate"`
	Peak     Memory             `json:"memory"`
	Verdict  predict.Verdict    `json:"verdict,omitempty" enum:"fits,tight" doc:"tight: less than 2 % of the card or 300 MiB is left; absent if it was not simulated"`
	Speed    Speed              `json:"speed"`
	Days     float64            `json:"days"`
	Dollars  *float64           `json:"dollars,omitempty"` // absent without a price
	KWh      float64            `json:"kwh,omitempty"`     // that the boards take at most
	Off      float64            `json:"off,omitempty"`     // by which share more it takes at most in four of five cases
	Price    *Price             `json:"price,omitempty"`
	Command  string             `json:"command"`          // that predicts it
	Recipe   *recipe.Recipe     `json:"recipe,omitempty"` // absent where no library has the model
	Workload *workload.Workload `json:"workload"`
	Card     *gpu.Card          `json:"-"`
	seconds  predict.Seconds    // of an update
}

// Memory is what the rank takes that needs the most.
type Memory struct {
	Allocated bytesize.Bytes `json:"allocated_bytes"`
	Reserved  bytesize.Bytes `json:"reserved_bytes"`
	Limit     bytesize.Bytes `json:"limit_bytes"` // what PyTorch may hold
}

// Speed is how fast an option is, by a time model.
type Speed struct {
	StepSeconds      float64 `json:"step_seconds"`    // of an update
	WaitingSeconds   float64 `json:"waiting_seconds"` // of that, GPUs wait for each other or for samples
	Efficiency       float64 `json:"scaling_efficiency"`
	SamplesPerSecond float64 `json:"samples_per_second"` // of all GPUs together
	TokensPerSecond  float64 `json:"tokens_per_second,omitempty"`
}

// Misfit is a card and a number of GPUs on which nothing fits.
type Misfit struct {
	GPU     string         `json:"gpu"`
	GPUs    int64          `json:"gpus"`
	Trains  change.Trains  `json:"trains"`
	Needs   bytesize.Bytes `json:"needs_bytes"` // of the way that needs the least
	Limit   bytesize.Bytes `json:"limit_bytes"`
	Setup   string         `json:"setup"` // that needs the least
	Days    float64        `json:"days"`  // and dollars it would take
	Dollars *float64       `json:"dollars,omitempty"`
	Reason  string         `json:"reason"`
}

// Defaults of a question.
const (
	DefaultMaxGPUs     = 64
	DefaultGlobalBatch = 64
	defaultTokens      = 1e9
	defaultSamples     = 1e6 // of what is not text
)

// unbounded is an work that ends only with the context.
func unbounded(ctx context.Context) *workbudget.Budget { return workbudget.New(math.MaxInt64, ctx.Err) }

// Make plans. Progress, which may be nil, hears how many of its parts are done,
// of a number that stays the same.
func Make(ctx context.Context, q Question, progress func(done, of int)) (*Plan, error) {
	began := time.Now()
	if q.Work == nil {
		q.Work = unbounded(ctx)
	}
	for _, key := range []string{"batch", "accumulate", "parallel"} {
		if _, given := q.Draft[key]; given {
			return nil, invalid.At(key, fmt.Errorf("a plan chooses %s; leave it out, and set global_batch, the samples per optimizer step", key))
		}
	}
	base, err := runnable(q.Draft, q.Emulation != nil)
	if err != nil {
		return nil, err
	}
	p, err := newPlanner(q, base)
	if err != nil {
		return nil, err
	}
	if progress != nil {
		p.progress = progress
	}
	if err := p.estimate(ctx); err != nil {
		return nil, err
	}
	if err := p.simulate(ctx); err != nil {
		return nil, err
	}
	out, err := p.answer()
	if err != nil {
		return nil, err
	}
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

// runnable is a draft as a workload, which need not be modelled if PyTorch runs it.
func runnable(d workload.Draft, emulated bool) (*workload.Workload, error) {
	if emulated {
		return d.Runnable()
	}
	return d.Workload()
}
