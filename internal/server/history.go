package server

import (
	"context"
	"strings"
	"time"

	"memorymark/internal/job"
)

// listInput filters the history.
type listInput struct {
	State   []string  `query:"state" enum:"queued,running,succeeded,failed,cancelled" doc:"any of these"`
	GPU     string    `query:"gpu" maxLength:"100" doc:"id of the card"`
	Model   string    `query:"model" maxLength:"200"`
	Engine  string    `query:"engine" enum:"predicted,emulated,measured"`
	ID      string    `query:"id" maxLength:"200" doc:"id of the workload"`
	Text    string    `query:"q" maxLength:"200" doc:"somewhere in model, card, engine, precision, optimizer or id"`
	Since   time.Time `query:"since" doc:"asked then or later"`
	Until   time.Time `query:"until" doc:"asked before"`
	After   string    `query:"after" maxLength:"100" doc:"next of the page before"`
	Answers bool      `query:"answers" doc:"with the answers of those that have succeeded"`
	Limit   int       `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

// History is a page of analyses.
type History struct {
	Analyses []*Analysis `json:"analyses"`
	Total    int         `json:"total" doc:"on all pages"`
	Next     string      `json:"next,omitempty" doc:"for after; absent on the last page"`
}

func (s *Server) listAnalyses(ctx context.Context, in *listInput) (*output[History], error) {
	f := job.Filter{Text: in.Text, Since: in.Since, Until: in.Until, After: in.After, Limit: in.Limit, Labels: make(map[string]string)}
	for _, state := range in.State {
		f.States = append(f.States, job.State(state))
	}
	for label, value := range map[string]string{"gpu": in.GPU, "model": in.Model, "engine": in.Engine, "id": in.ID} {
		if value != "" {
			f.Labels[label] = value
		}
	}
	// Pages of long analyses take much memory, as long questions do.
	release, err := s.parsing.Acquire(ctx, callOf(ctx).client(), maxSmallBody)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	defer release()
	page, err := s.opts.Jobs.List(ctx, f)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	out := History{Analyses: []*Analysis{}, Total: page.Total, Next: page.Next}
	for i := range page.Jobs {
		a, err := newAnalysis(&page.Jobs[i])
		if in.Answers && err == nil {
			a, err = s.describe(ctx, &page.Jobs[i])
		}
		if err != nil {
			// One that another version wrote must not hide the others.
			s.log.WarnContext(ctx, "an analysis cannot be read", "id", page.Jobs[i].ID, "error", err)
			continue
		}
		a.Reason = beginning(a.Reason)
		out.Analyses = append(out.Analyses, a)
	}
	return &output[History]{out}, nil
}

// maxListedReason is how much of a reason a list has: a page has 500 of them.
const maxListedReason = 1000

func beginning(reason string) string {
	if len(reason) <= maxListedReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxListedReason], "") + " […]"
}
