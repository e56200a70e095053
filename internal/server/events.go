package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"
)

// Progress is something that the worker of an analysis said.
type Progress struct {
	Time    time.Time       `json:"time"`
	Attempt int             `json:"attempt"`
	Data    json.RawMessage `json:"data" doc:"a probe, a step, or a line for people in message"`
}

// Alive says that nothing has happened, so that both ends know of each other.
type Alive struct {
	Time time.Time `json:"time"`
}

// aliveEvery is more often than proxies lose patience.
const aliveEvery = 20 * time.Second

// eventsInput says from where on events are wanted.
type eventsInput struct {
	ID          string `path:"id" maxLength:"100"`
	LastEventID string `header:"Last-Event-ID" maxLength:"20" doc:"return only later events; browsers send it when they reconnect"`
	After       uint64 `query:"after" doc:"the same, for clients that cannot set headers"`
}

func (s *Server) eventRoutes(api huma.API) {
	op := get("watch-analysis", "/v1/analyses/{id}/events", "What happens, as it happens",
		"Server-sent events: analysis, the record as it is now and whenever it changes, with the answer in the end; progress, what the worker says, "+
			"with an id to continue from; alive, when there is nothing to say. The stream ends with the analysis.", tagAnalyses)
	op.Errors = []int{http.StatusNotFound}
	op.Middlewares = huma.Middlewares{s.onlyExisting(api)}
	page := get("list-progress", "/v1/analyses/{id}/progress", "What its workers said, page by page",
		"The oldest first, as far as it is kept: the last 2,000 lines, for 30 days. A page ends with next, to be given as after.", tagAnalyses, http.StatusNotFound)
	huma.Register(api, page, s.listProgress)
	sse.Register(api, op, map[string]any{"analysis": &Analysis{}, "progress": Progress{}, "alive": Alive{}}, s.watchAnalysis)
}

// ProgressPage is a page of what the workers of an analysis said.
type ProgressPage struct {
	Progress []Progress `json:"progress"`
	Next     uint64     `json:"next,omitempty" doc:"for after; absent on the last page"`
}

func (s *Server) listProgress(ctx context.Context, in *struct {
	ID    string `path:"id" maxLength:"100"`
	After uint64 `query:"after" doc:"next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
},
) (*output[ProgressPage], error) {
	page, err := s.opts.Jobs.Events(ctx, in.ID, in.After, in.Limit)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	out := ProgressPage{Progress: []Progress{}, Next: page.Next}
	for _, e := range page.Events {
		out.Progress = append(out.Progress, Progress{e.Time, e.Attempt, e.Data})
	}
	return &output[ProgressPage]{out}, nil
}

// onlyExisting answers for analyses that there are not; a stream has answered
// before it could.
func (s *Server) onlyExisting(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if _, err := s.opts.Jobs.Get(ctx.Context(), ctx.Param("id")); err != nil {
			_ = huma.WriteErr(api, ctx, statusOf(err), err.Error())
			return
		}
		stream(ctx, next)
	}
}

// stream says of an answer that it comes bit by bit.
func stream(ctx huma.Context, next func(huma.Context)) {
	ctx.SetHeader("Cache-Control", "no-store")
	ctx.SetHeader("X-Accel-Buffering", "no") // proxies that collect answers would hold events back
	next(ctx)
}

func (s *Server) watchAnalysis(ctx context.Context, in *eventsInput, send sse.Sender) {
	ctx, leave := s.untilStopping(ctx)
	defer leave()
	after := in.After
	if n, err := strconv.ParseUint(in.LastEventID, 10, 64); err == nil {
		after = n
	}
	events, err := s.opts.Jobs.Watch(ctx, in.ID, after)
	if err != nil {
		s.log.ErrorContext(ctx, "an analysis cannot be watched", "id", in.ID, "error", err)
		return
	}
	quiet := time.NewTicker(aliveEvery)
	defer quiet.Stop()
	for {
		var message sse.Message
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			quiet.Reset(aliveEvery)
			if e.Job == nil {
				message = sse.Message{ID: int(e.Seq), Data: Progress{e.Time, e.Attempt, e.Data}}
				break
			}
			a, err := s.describe(ctx, e.Job)
			if err != nil {
				s.log.ErrorContext(ctx, "an analysis cannot be read", "id", in.ID, "error", err)
				return
			}
			message.Data = a
		case <-quiet.C:
			message.Data = Alive{time.Now().UTC()}
		}
		if err := send(message); err != nil {
			return // the client left
		}
	}
}
