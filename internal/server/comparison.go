package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/analysis"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

func (s *Server) comparisonRoutes(api huma.API) {
	huma.Register(api, post("compare-cards", "/v1/comparisons/cards", "A workload on every card",
		"The largest and the recommended batch, throughput and price per million samples, predicted for each card.", tagComparisons),
		operation(s, s.compareCards))
	huma.Register(api, post("compare-settings", "/v1/comparisons/settings", "A workload with other settings",
		"Every combination of precision, optimizer and checkpointing, predicted.", tagComparisons),
		operation(s, s.compareSettings))
}

// CardsQuestion asks how a workload does on cards.
type CardsQuestion struct {
	Question
	GPUs []string `json:"gpus,omitempty" maxItems:"100" doc:"ids of cards; all of the catalog if absent"`
}

// CardsComparison is a row for each card.
type CardsComparison struct {
	Cards    []analysis.OnCard `json:"cards"`
	Accuracy *predict.Accuracy `json:"accuracy,omitempty" doc:"how far off such predictions were, absent if that is not known"`
}

func (s *Server) compareCards(ctx context.Context, q CardsQuestion) (c CardsComparison, err error) {
	r, err := s.request(q.Question)
	cards := gpu.All()
	if q.GPUs != nil && err == nil {
		cards, err = findCards(q.GPUs)
	}
	if err != nil {
		return c, err
	}
	key := "cards " + requestKey(r)
	for _, c := range cards {
		key += " " + c.ID
	}
	asked := question{key: key, long: true, pieces: true}
	c.Accuracy = predict.AccuracyOf(r.Workload)
	c.Cards, err = remembered(ctx, s.compute, asked, func(ctx context.Context) ([]analysis.OnCard, error) {
		r.Work = workbudget.New(workbudget.PerQuestion, ctx.Err)
		return analysis.CompareCards(ctx, r, cards, s.compute.largePiece)
	})
	return c, err
}

func findCards(ids []string) ([]*gpu.Card, error) {
	if err := once("body.gpus", ids); err != nil {
		return nil, err
	}
	out := []*gpu.Card{}
	for i, id := range ids {
		card, err := gpu.Find(id)
		if err != nil {
			return nil, bad(fmt.Sprintf("body.gpus[%d]", i), "%v", err)
		}
		out = append(out, card)
	}
	return out, nil
}

// once checks that nothing is in a list twice. A schema could say so, but then
// huma panics on a list of lists, and repeats the whole list for every item.
func once[T comparable](place string, list []T) error {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			return bad(fmt.Sprintf("%s[%d]", place, i), "%v is given twice", v)
		}
	}
	return nil
}

// SettingsQuestion asks how a workload does with other settings.
type SettingsQuestion struct {
	Question
	Precisions    []precisionName `json:"precisions,omitempty" maxItems:"100" doc:"all that the card has in hardware if absent"`
	Optimizers    []optimizerName `json:"optimizers,omitempty" maxItems:"100" doc:"adamw, sgd-momentum and sgd if absent"`
	Checkpointing []bool          `json:"checkpointing,omitempty" maxItems:"2" doc:"without and with if absent"`
}

// SettingsComparison is a row for each combination.
type SettingsComparison struct {
	Settings []analysis.WithSettings `json:"settings"`
	Accuracy *predict.Accuracy       `json:"accuracy,omitempty" doc:"how far off such predictions were, absent if that is not known"`
}

func (s *Server) compareSettings(ctx context.Context, q SettingsQuestion) (c SettingsComparison, err error) {
	r, err := s.request(q.Question)
	err = errors.Join(err, once("body.precisions", q.Precisions), once("body.optimizers", q.Optimizers), once("body.checkpointing", q.Checkpointing))
	if err != nil {
		return c, err
	}
	settings := analysis.GridSettings{Precisions: named[workload.Precision](q.Precisions), Optimizers: named[workload.Optimizer](q.Optimizers), Checkpointing: q.Checkpointing}
	data, err := json.Marshal(settings)
	if err != nil {
		return c, err
	}
	asked := question{key: "settings " + string(data) + requestKey(r), long: true, pieces: true}
	c.Accuracy = predict.AccuracyOf(r.Workload)
	c.Settings, err = remembered(ctx, s.compute, asked, func(ctx context.Context) ([]analysis.WithSettings, error) {
		r.Work = workbudget.New(workbudget.PerQuestion, ctx.Err)
		return analysis.CompareSettings(ctx, r, settings, s.compute.largePiece)
	})
	return c, err
}
