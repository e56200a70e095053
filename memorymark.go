// Package memorymark answers, for Go programs, what training a neural network
// takes of a GPU's memory: what a workload takes, the largest batch that
// trains on a card, what to train on and how, and what a recorded run would
// have taken under other settings. It needs no GPU and no Python.
//
//	w, err := memorymark.ParseWorkload([]byte(`{"model": "gpt2", "batch": 8}`))
//	card, err := memorymark.FindCard("a10")
//	p, err := memorymark.Predict(w, card)
//	fmt.Println(p.Fits, p.PeakReserved())
//
// A workload is JSON, with the keys that the command line has flags for; what
// is wrong with one is an error that names every key. The answers are those of
// the command line and of the API, with the same keys in JSON.
//
// Everything here is safe to call from several goroutines at once.
package memorymark

import (
	"context"
	"fmt"
	"io"

	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/gpu"
	"memorymark/internal/plan"
	"memorymark/internal/predict"
	"memorymark/internal/recording"
	"memorymark/internal/search"
	"memorymark/internal/workload"
	"memorymark/snapshot"
)

type (
	// Bytes is an amount of memory. It prints itself as 1.62 GiB.
	Bytes = bytesize.Bytes
	// Workload is what is trained: the model, the batch, and how a step runs.
	Workload = workload.Workload
	// Model is a model of the catalog.
	Model = workload.CatalogModel
	// Card is a GPU of the catalog.
	Card = gpu.Card
	// Prediction is what a workload takes on a card.
	Prediction = predict.Prediction
	// WhatIf is what a replay changes about a recorded run; nil leaves a thing
	// as it was recorded.
	WhatIf = recording.WhatIf
	// Replayed is what a recorded run would have taken.
	Replayed = recording.Replay

	// Draft is a workload of which some keys are left open.
	Draft = workload.Draft
	// PlanQuestion is what is to be planned: a draft, on which cards, and how
	// much there is to train on. What is zero takes the command line's default.
	PlanQuestion = plan.Question
	// TrainingPlan is what to train a model on, and how.
	TrainingPlan = plan.Plan
	// Holding is a card and how many of them there are, 0 for as many as can be
	// rented.
	Holding = plan.Holding
	// Option is a way to train that fits.
	Option = plan.Option
	// Change is one thing to change: what people call it, and the keys of a workload
	// that it sets.
	Change = change.Change
	// Verdict says whether what was predicted fits, and whether by a margin.
	Verdict = predict.Verdict
	// FitAnswer is what it takes to make a workload fit a card.
	FitAnswer = plan.Fit
)

// ParseWorkload reads a workload from a JSON object, fills in the defaults, and
// checks it. Its keys are those of memorymark predict -f.
func ParseWorkload(data []byte) (*Workload, error) { return workload.Parse(data) }

// ParseBytes reads an amount of memory as people write it: 22GiB, 512 MiB.
func ParseBytes(text string) (Bytes, error) { return bytesize.Parse(text) }

// Models returns the models of the catalog.
func Models() []*Model { return workload.Models() }

// Cards returns the cards of the catalog.
func Cards() []*Card { return gpu.All() }

// FindCard returns the card of an id, as a10, or of the name that PyTorch or
// nvidia-smi calls it by, as NVIDIA H100 80GB HBM3.
func FindCard(name string) (*Card, error) { return gpu.Find(name) }

// Predict runs three steps of a workload on a card, under the workload's limit
// or all that the card has. A workload that does not fit is no error: the
// prediction says so, where memory ran out, and what it would take.
func Predict(w *Workload, card *Card) (*Prediction, error) {
	return predict.Predict(w, card, predict.Options{})
}

// Largest returns the largest batch of a workload that trains on a card in a
// fresh process, 0 if none does. The workload's own batch does not count.
func Largest(w *Workload, card *Card) (int64, error) {
	found, err := predict.NewBatches(w, card, nil).Largest(search.Options{})
	if err != nil {
		return 0, err
	}
	return found.Largest, nil
}

// ParseDraft reads a JSON object with some keys of a workload.
func ParseDraft(data []byte) (Draft, error) { return workload.ParseDraft(data) }

// Plan finds what to train a model on, and how: what fits, by dollars and by
// days. Keys that the draft has stay as they are. Without cards it compares
// those of the catalog that have a list price. It takes seconds on every core,
// and ends with the context.
func Plan(ctx context.Context, q PlanQuestion) (*TrainingPlan, error) {
	if len(q.Cards) == 0 {
		q.Cards = plan.Cards()
	}
	return plan.Make(ctx, q, nil)
}

// Fit finds the fewest changes with which a workload trains on a card. Keys that
// the draft has stay as they are, and so do the samples of an update: its batch
// times what it accumulates.
func Fit(ctx context.Context, d Draft, card *Card) (*FitAnswer, error) {
	return plan.MakeFit(ctx, plan.FitQuestion{Draft: d, Card: card})
}

// Replay plays a recorded run again, under the recorded or other settings of the
// allocator: a snapshot of torch.cuda.memory._dump_snapshot, plain or compressed,
// and of its devices the one with the most events.
func Replay(r io.Reader, change WhatIf) (*Replayed, error) {
	s, err := snapshot.Read(r, snapshot.Limits{})
	if err != nil {
		return nil, err
	}
	device, err := recording.Choose(s, recording.BusiestDevice)
	if err == nil {
		err = change.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return recording.New(device).Replay(change, nil)
}
