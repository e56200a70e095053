package server

import (
	"context"

	"memorymark/internal/recording"
	"memorymark/internal/trace"
)

type eventsQuery struct {
	ID         string   `path:"id" pattern:"^[0-9a-f]{64}$"`
	Device     int      `query:"device" default:"-1"`
	From       int      `query:"from" minimum:"0" doc:"first event to look at; next of the page before"`
	Limit      int      `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Action     []string `query:"action" enum:"alloc,free_requested,free_completed,segment_alloc,segment_free,segment_map,segment_unmap,snapshot,oom" doc:"any of these"`
	MinBytes   int64    `query:"min_bytes" minimum:"0"`
	MaxBytes   int64    `query:"max_bytes" minimum:"0"`
	Address    uint64   `query:"address" doc:"in what the event is about"`
	Frame      string   `query:"frame" maxLength:"200" doc:"in a file or a function of the stack, in any case"`
	Allocation int      `query:"allocation" default:"-1" minimum:"-1" doc:"only what is about this one"`
}

// Events is a page of events.
type Events struct {
	Events []recording.EventRow `json:"events"`
	Total  int                  `json:"total" doc:"events of the device, found or not"`
	Next   *int                 `json:"next,omitempty" doc:"for from; absent on the last page"`
}

func (s *Server) getEvents(ctx context.Context, in *eventsQuery) (*kept[*Events], error) {
	return answerOf(ctx, s, in.ID, in.Device, func(r *recording.Recording) (*Events, error) {
		search := recording.Search{From: in.From, MinBytes: in.MinBytes, MaxBytes: in.MaxBytes, Address: in.Address, Frame: in.Frame}
		if in.Allocation >= 0 {
			id := trace.ID(in.Allocation)
			search.Allocation = &id
		}
		for _, name := range in.Action {
			for a := trace.Alloc; a <= trace.LastAction; a++ {
				if a.String() == name {
					search.Actions = append(search.Actions, a)
				}
			}
		}
		found, next := r.Find(search, in.Limit)
		out := &Events{Events: r.Describe(found), Total: len(r.Events)}
		if next >= 0 {
			out.Next = &next
		}
		return out, nil
	})
}

type segmentsInput struct {
	ID     string `path:"id" pattern:"^[0-9a-f]{64}$"`
	Device int    `query:"device" default:"-1"`
	At     string `query:"at" default:"end" maxLength:"20" doc:"peak, end, oom or the number of an event"`
}

func (s *Server) getSegments(ctx context.Context, in *segmentsInput) (*kept[*recording.Segments], error) {
	return answerOf(ctx, s, in.ID, in.Device, func(r *recording.Recording) (*recording.Segments, error) {
		return r.Segments(in.At)
	})
}

type flameInput struct {
	ID     string `path:"id" pattern:"^[0-9a-f]{64}$"`
	Device int    `query:"device" default:"-1"`
	At     string `query:"at" default:"peak" maxLength:"20" doc:"peak, end, oom (the last failure) or the number of an event"`
}

func (s *Server) getFlame(ctx context.Context, in *flameInput) (*kept[*recording.Flame], error) {
	return answerOf(ctx, s, in.ID, in.Device, func(r *recording.Recording) (*recording.Flame, error) {
		return r.Flame(in.At)
	})
}

type stretchInput struct {
	ID     string `path:"id" pattern:"^[0-9a-f]{64}$"`
	Device int    `query:"device" default:"-1"`
	From   int    `query:"from" minimum:"0" doc:"first event"`
	To     int    `query:"to" minimum:"0" doc:"event to stop before"`
	N      int    `query:"n" minimum:"1" maximum:"1000" default:"20" doc:"how many groups of each kind"`
}

func (s *Server) getStretch(ctx context.Context, in *stretchInput) (*kept[*recording.Stretch], error) {
	return answerOf(ctx, s, in.ID, in.Device, func(r *recording.Recording) (*recording.Stretch, error) {
		return r.Stretch(in.From, in.To, in.N)
	})
}

type twoInput struct {
	ID     string `path:"id" pattern:"^[0-9a-f]{64}$"`
	With   string `query:"with" required:"true" pattern:"^[0-9a-f]{64}$" doc:"the other snapshot"`
	Device int    `query:"device" default:"-1"`
	N      int    `query:"n" minimum:"1" maximum:"1000" default:"20" doc:"how many differences"`
	At     string `query:"at" default:"peak" enum:"peak,end,oom" doc:"for a diff: the moment to look at"`
}

// answerOfBoth is answerOf for two recordings.
func answerOfBoth[T any](ctx context.Context, s *Server, in *twoInput, do func(a, b *recording.Recording) (T, error)) (*kept[T], error) {
	b, err := s.library.device(ctx, in.With, in.Device)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	return answerOf(ctx, s, in.ID, in.Device, func(a *recording.Recording) (T, error) { return do(a, b) })
}

// around is how many requests are shown on either side of the first
// difference.
const around = 4

func (s *Server) getCompare(ctx context.Context, in *twoInput) (*kept[*recording.Compare], error) {
	return answerOfBoth(ctx, s, in, func(a, b *recording.Recording) (*recording.Compare, error) {
		return recording.NewCompare(recording.CompareInput{File: in.ID, Trace: a.Trace}, recording.CompareInput{File: in.With, Trace: b.Trace},
			trace.Compare(a.Trace, b.Trace), in.N, around), nil
	})
}

func (s *Server) getDiff(ctx context.Context, in *twoInput) (*kept[*recording.Diff], error) {
	return answerOfBoth(ctx, s, in, func(a, b *recording.Recording) (*recording.Diff, error) {
		d, err := recording.NewDiff(a, b, in.At, in.N)
		if err != nil {
			return nil, err
		}
		d.Before.File, d.After.File = in.ID, in.With
		return d, nil
	})
}
