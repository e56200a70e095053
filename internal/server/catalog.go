package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/gpu"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

func (s *Server) catalogRoutes(api huma.API) {
	huma.Register(api, get("list-models", "/v1/models", "The models that have a name here",
		"Any other model of their families can be given by its config.json.", tagCatalogs),
		func(context.Context, *struct{}) (*output[report.Models], error) {
			return &output[report.Models]{report.Models{Models: workload.Models()}}, nil
		})
	huma.Register(api, get("list-gpus", "/v1/gpus", "The cards that have a name here",
		"Every figure has its source and date. this_machine is the id of the card that this server has, absent if it has none.", tagCatalogs),
		func(context.Context, *struct{}) (*output[Cards], error) {
			return &output[Cards]{s.cards()}, nil
		})
}

func (s *Server) cards() Cards {
	cards := Cards{CardsText: report.CardsText{Cards: gpu.All()}, Default: gpu.Default}
	if card, ok := s.machine(); ok {
		cards.ThisMachine, cards.Default = card.ID, card.ID
	}
	return cards
}

// Cards is the catalog of cards and which of them count here.
type Cards struct {
	report.CardsText
	ThisMachine string `json:"this_machine,omitempty" doc:"the card of this machine"`
	Default     string `json:"default" doc:"the card of workloads that name none"`
}
