package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/plan"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

func (s *Server) planRoutes(api huma.API) {
	huma.Register(api, post("plan", "/v1/plans", "What to train a model on, and how",
		"Compares GPUs, how many of them, parallelism, precision, checkpointing, adapters, optimizers and batches: what fits, by cost and by time, and why the rest does not. "+
			"Keys that the workload has stay as they are. Options are simulated, the best first; those of a large model that there is no time for say so. "+
			"Times are by a time model. It takes some seconds, and ends when the client leaves.", tagPredictions),
		operation(s, s.makePlan))
	s.planEvents(api)
	huma.Register(api, post("fit", "/v1/fits", "The fewest changes that make a workload fit a card",
		"Looks at single changes of precision, checkpointing, optimizer, adapters and the split of the batch, then at two together, and so on until some fit. "+
			"Keys that the workload has stay as they are, and so does the batch of an update.", tagPredictions),
		operation(s, s.makeFit))
}

// PlanQuestion asks for a plan.
type PlanQuestion struct {
	Workload    draft         `json:"workload"`
	GPUs        []string      `json:"gpus,omitempty" maxItems:"40" doc:"ids of cards; those with a list price of about the same time if absent"`
	MaxGPUs     int64         `json:"max_gpus,omitempty" minimum:"0" maximum:"512" doc:"the most GPUs to use together; 64 if absent"`
	GlobalBatch int64         `json:"global_batch,omitempty" minimum:"0" maximum:"65536" doc:"samples of an update, over all GPUs; 64 if absent"`
	Tokens      figure.Amount `json:"tokens,omitempty" doc:"to train on; a billion if absent"`
	Samples     figure.Amount `json:"samples,omitempty" doc:"to train on, instead of tokens"`
	Full        bool          `json:"full,omitempty" doc:"train all weights: no adapters"`
	Within      plan.Budget   `json:"within,omitzero" doc:"what it may cost and take"`
}

// FitQuestion asks how to make a workload fit its card.
type FitQuestion struct {
	Workload draft          `json:"workload"`
	Reserve  bytesize.Bytes `json:"reserve_bytes,omitempty" minimum:"0" doc:"memory to keep free in addition to the CUDA context"`
	Full     bool           `json:"full,omitempty" doc:"train all weights: no adapters"`
}

// planBudget is what a plan may take. Its events take less time than others: what a
// simulation asks for is counted once for all passes and cards. Every option of Llama
// 3.1 8B takes 67 million, of Llama 3.1 70B 104 million and of Gemma 2 9B 140 million;
// of the last two, the best are simulated.
const planBudget = 3 * workbudget.PerQuestion / 2

// deep is from how many layers on events take longer: what a process holds is then too
// much for the processor's caches.
const deep = 200

// workOf is what a plan of a workload may take.
func (s *Server) workOf(w *workload.Workload) int64 {
	if w.Config.Layers() >= deep {
		return min(s.planBudget, workbudget.PerQuestion)
	}
	return s.planBudget
}

func (s *Server) makePlan(ctx context.Context, in PlanQuestion) (*plan.Plan, error) {
	asked, do, err := s.planWork(in)
	if err != nil {
		return nil, err
	}
	return remembered(ctx, s.compute, asked, do)
}

// planWork is what a plan takes to be made.
func (s *Server) planWork(in PlanQuestion) (question, func(context.Context) (*plan.Plan, error), error) {
	q := plan.Question{
		Draft: in.Workload.keys, MaxGPUs: in.MaxGPUs, GlobalBatch: in.GlobalBatch, Tokens: in.Tokens, Samples: in.Samples,
		Full: in.Full, Within: in.Within, Cards: plan.Cards(),
	}
	if in.GPUs != nil {
		cards, err := findCards(in.GPUs)
		if err != nil {
			return question{}, nil, err
		}
		q.Cards = nil
		for _, c := range cards {
			q.Cards = append(q.Cards, plan.Holding{Card: c})
		}
	}
	key, err := json.Marshal(in)
	if err != nil {
		return question{}, nil, fmt.Errorf("write the question: %w", err)
	}
	asked := question{key: "plan " + string(key), long: true, pieces: true, progress: new(progress)}
	return asked, func(ctx context.Context) (*plan.Plan, error) {
		q.Work, q.Piece = workbudget.New(s.workOf(in.Workload.workload), ctx.Err), s.compute.largePiece
		p, err := plan.Make(ctx, q, asked.progress.tell)
		return p, predicted(err)
	}, nil
}

func (s *Server) makeFit(ctx context.Context, in FitQuestion) (*plan.Fit, error) {
	_, card, err := s.onCard(in.Workload.workload)
	if err != nil {
		return nil, err
	}
	keys := maps.Clone(in.Workload.keys)
	delete(keys, "gpu") // which the card stands for, however it was named
	in.Workload.keys = keys
	key, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("write the question: %w", err)
	}
	asked := question{key: "fit " + card.ID + string(key), long: true}
	return remembered(ctx, s.compute, asked, func(ctx context.Context) (*plan.Fit, error) {
		f, err := plan.MakeFit(ctx, plan.FitQuestion{Draft: keys, Card: card, Reserve: in.Reserve, Full: in.Full, Work: workbudget.New(workbudget.PerQuestion, ctx.Err)})
		return f, predicted(err)
	})
}
