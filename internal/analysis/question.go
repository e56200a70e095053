package analysis

import (
	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Question is what people ask of a workload on a card. This is its one form in
// JSON: a body of the API and an order for a worker embed it.
type Question struct {
	GlobalBatch  int64          `json:"global_batch,omitempty" minimum:"0" maximum:"1099511627776" doc:"samples for each update, to be split into batches that fit"`
	MultipleOf   int64          `json:"multiple_of,omitempty" minimum:"0" maximum:"1048576" doc:"only such batches count"`
	Reserve      bytesize.Bytes `json:"reserve_bytes,omitempty" minimum:"0" doc:"memory to keep free in addition to the CUDA context"`
	HoursPerYear float64        `json:"hours_per_year,omitempty" minimum:"0" maximum:"8784" doc:"of the card; 200 if absent"`
	PricePerHour *float64       `json:"price_per_hour,omitempty" minimum:"0" maximum:"1000000" doc:"in dollars; the card's catalog price if absent"`
	RunTokens    figure.Amount  `json:"run_tokens,omitempty" doc:"tokens of a run, to say what it takes and costs"`
	RunSamples   figure.Amount  `json:"run_samples,omitempty" doc:"samples of a run, instead of tokens"`
	Changes      bool           `json:"changes,omitempty" doc:"say what each single change would do"`
}

// What a card may cost for an hour, and how long it may run in a year.
const (
	MaxPrice = 1_000_000
	MaxHours = 366 * 24
)

// Request is a question with what it is about. The workload's batch is what the
// user runs today.
type Request struct {
	Workload *workload.Workload
	Card     *gpu.Card
	Question
	// Given are the keys of the workload that the user set, which changes leave alone.
	Given []string
	// Work is what the answer may take; nil is without bound.
	Work *workbudget.Budget
}

// Throughput counts samples and, of text, tokens.
func (r *Request) Throughput(batch int64, stepSeconds float64) Throughput {
	s := Throughput{SamplesPerSecond: r.samplesPerSecond(batch, stepSeconds)}
	if r.Workload.Config != nil && r.Workload.Program == nil && r.Workload.Unmodelled == "" && !r.Workload.TakesImages() {
		s.TokensPerSecond = figure.Significant(s.SamplesPerSecond*r.Workload.MeanTokens(), 4)
	}
	return s
}

// samplesPerSecond counts every sample of a step, also those of the passes
// that are accumulated.
func (r *Request) samplesPerSecond(batch int64, stepSeconds float64) float64 {
	if stepSeconds == 0 {
		return 0
	}
	return figure.Significant(float64(batch)*float64(max(r.Workload.Accumulate, 1))/stepSeconds, 4)
}
