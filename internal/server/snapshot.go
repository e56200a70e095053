package server

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/bytesize"
	"memorymark/internal/recording"
	"memorymark/internal/snapshot"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/timeline"
	"memorymark/internal/workbudget"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func (s *Server) snapshotRoutes(api huma.API, mux *http.ServeMux) {
	s.uploadRoutes(api, mux)
	mux.HandleFunc("GET /v1/snapshots/{id}/file", s.download)
	of := func(id, path, summary, text string) huma.Operation {
		return get(id, "/v1/snapshots/{id}"+path, summary, text, tagSnapshots, http.StatusNotFound, http.StatusUnprocessableEntity)
	}
	huma.Register(api, get("list-snapshots", "/v1/snapshots", "The snapshots, newest first", "", tagSnapshots), s.listSnapshots)
	huma.Register(api, of("get-snapshot", "", "What a snapshot holds", "Devices, peaks, categories, failures with what would have helped, settings."), s.getSnapshot)
	huma.Register(api, huma.Operation{
		OperationID: "delete-snapshot", Method: http.MethodDelete, Path: "/v1/snapshots/{id}", Summary: "Delete a snapshot",
		Tags: tagSnapshots, Errors: []int{http.StatusNotFound},
	}, s.deleteSnapshot)
	huma.Register(api, of("get-timeline", "/timeline", "Active memory over the events, ready to draw",
		"A window of it, at the detail that a screen has. docs/timeline-format.md explains the columns."), s.getTimeline)
	huma.Register(api, of("get-top", "/top", "What is largest at a moment, and which line made it", ""), s.getTop)
	huma.Register(api, of("get-flame", "/flame", "What is live at a moment, by who called whom", "A tree from the outermost caller to what the memory is for."), s.getFlame)
	huma.Register(api, of("get-stretch", "/stretch", "What happens between two events, by line, module and category",
		"What is made, freed and kept there, and what is live when it is highest."), s.getStretch)
	huma.Register(api, of("get-replay", "/replay", "Would it have fitted another card or another setting?",
		"Without a change it compares the simulated allocator with the recording."), s.getReplay)
	huma.Register(api, of("get-events", "/events", "The events, in pages, searched", ""), s.getEvents)
	huma.Register(api, of("get-segments", "/segments", "What the allocator held at a moment", ""), s.getSegments)
	huma.Register(api, of("compare-snapshots", "/compare", "Where two snapshots part, event by event", ""), s.getCompare)
	huma.Register(api, of("diff-snapshots", "/diff", "What grew and what shrank between two snapshots, by stack", ""), s.getDiff)
}

// Snapshot is a file and what it holds.
type Snapshot struct {
	snapshotstore.Entry
	Kind     string                  `json:"kind" enum:"recorded,emulated,predicted,measured" doc:"what is known of how it came to be; a file tells emulation and prediction by its stacks"`
	Protocol int                     `json:"pickle_protocol"`
	Encoding string                  `json:"encoding" doc:"how it was packed"`
	Unknown  []string                `json:"unknown_keys,omitempty"`
	Devices  []*recording.DeviceInfo `json:"devices"`
}

// describeSnapshot reads a snapshot and says what it holds.
func (s *Server) describeSnapshot(ctx context.Context, e snapshotstore.Entry) (*Snapshot, error) {
	b, err := s.library.open(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	devices, err := remembered(ctx, s.compute, question{key: "devices " + e.ID}, func(context.Context) ([]*recording.DeviceInfo, error) {
		out := []*recording.DeviceInfo{}
		for _, t := range recording.Devices(b.file) {
			info, err := b.devices[t.Device].Info()
			if err != nil {
				return nil, &badSnapshot{err}
			}
			out = append(out, info)
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	return &Snapshot{Entry: e, Kind: kindOf(e, b.file), Protocol: b.file.Protocol, Encoding: b.file.Encoding, Unknown: b.file.Unknown, Devices: devices}, nil
}

// kindOf says how a snapshot came to be.
func kindOf(e snapshotstore.Entry, file *snapshot.Snapshot) string {
	if e.Origin != snapshotstore.Uploaded {
		return string(e.Origin)
	}
	return recording.KindOfFile(file)
}

// snapshotInput names a snapshot.
type snapshotInput struct {
	ID string `path:"id" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the file"`
}

// Snapshots is a list of files.
type Snapshots struct {
	Snapshots []snapshotstore.Entry `json:"snapshots"`
	Stored    int64                 `json:"stored_bytes"`
	Quota     int64                 `json:"quota_bytes"`
	MaxUpload int64                 `json:"max_upload_bytes" doc:"the largest file that is accepted, as it is sent"`
}

func (s *Server) listSnapshots(context.Context, *struct{}) (*output[Snapshots], error) {
	out := Snapshots{Snapshots: s.opts.Snapshots.List(), MaxUpload: s.opts.Snapshots.MaxUpload()}
	out.Stored, out.Quota = s.opts.Snapshots.Usage()
	return &output[Snapshots]{out}, nil
}

func (s *Server) getSnapshot(ctx context.Context, in *snapshotInput) (*kept[*Snapshot], error) {
	e, err := s.opts.Snapshots.Get(in.ID)
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	return answerFrom(ctx, s, func() (*Snapshot, error) { return s.describeSnapshot(ctx, e) })
}

func (s *Server) deleteSnapshot(ctx context.Context, in *snapshotInput) (*struct{}, error) {
	if err := s.opts.Snapshots.Delete(in.ID); err != nil {
		return nil, s.problem(ctx, err)
	}
	s.library.forget(in.ID)
	return nil, nil //nolint:nilnil // there is nothing to say
}

// download sends the file as it was uploaded.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	f, err := s.opts.Snapshots.Open(id)
	if err != nil {
		s.fail(w, r, statusOf(err), err.Error())
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="snapshot-`+id[:12]+`.pickle"`)
	_, _ = io.Copy(w, f) // a client that left is no news
}

// kept is an answer that stays true: a snapshot is named by what it is.
type kept[T any] struct {
	CacheControl string `header:"Cache-Control"`
	Body         T
}

const keptFor = "private, max-age=3600"

// answerOf answers with what a function says of one device, worked out on a core
// in its turn.
func answerOf[T any](ctx context.Context, s *Server, id string, device int, do func(*recording.Recording) (T, error)) (*kept[T], error) {
	return answerFrom(ctx, s, func() (value T, err error) {
		r, err := s.library.device(ctx, id, device)
		if err != nil {
			return value, err
		}
		err = s.compute.largePiece(ctx, func() error {
			value, err = do(r)
			return err
		})
		return value, err
	})
}

// answerFrom answers with what a function returns.
func answerFrom[T any](ctx context.Context, s *Server, do func() (T, error)) (*kept[T], error) {
	value, err := do()
	if err != nil {
		return nil, s.problem(ctx, err)
	}
	return &kept[T]{keptFor, value}, nil
}

// maxSteps is how many boxes a timeline has at most: about ten for each of
// the allocations that a page can draw one by one, and 10 MB.
const maxSteps = 1_000_000

// timelineInput is a window and how much to show of it.
type timelineInput struct {
	ID      string `path:"id" pattern:"^[0-9a-f]{64}$"`
	Device  int    `query:"device" default:"-1" doc:"its number; -1 is the one with the most events"`
	From    int    `query:"from" minimum:"0" doc:"first event"`
	To      int    `query:"to" minimum:"0" doc:"event to stop before; 0 is the end"`
	Columns int    `query:"columns" minimum:"1" maximum:"20000" default:"1600" doc:"at most; about the pixels across"`
	Detail  int    `query:"detail" minimum:"1" maximum:"100000" default:"4000" doc:"how many of the largest allocations are shapes of their own; the rest are bands"`
	ByStack bool   `query:"by_stack" doc:"colour by stack even where the category is known"`
}

func (s *Server) getTimeline(ctx context.Context, in *timelineInput) (*kept[*timeline.Wire], error) {
	return answerOf(ctx, s, in.ID, in.Device, func(r *recording.Recording) (*timeline.Wire, error) {
		if in.From > len(r.Events) || in.To > len(r.Events) || in.To > 0 && in.From > in.To {
			return nil, bad("query.from", "events %d to %d: there are %d", in.From, in.To, len(r.Events))
		}
		tl, err := r.Timeline(timeline.Options{
			From: in.From, To: in.To, Columns: in.Columns, Detail: in.Detail, Steps: maxSteps, ByStack: in.ByStack,
		})
		if err != nil {
			return nil, err
		}
		return tl.Wire(), nil
	})
}

type topInput struct {
	ID     string `path:"id" pattern:"^[0-9a-f]{64}$"`
	Device int    `query:"device" default:"-1"`
	At     string `query:"at" default:"peak" maxLength:"20" doc:"peak, end, oom (the last failure) or the number of an event"`
	By     string `query:"by" enum:"line,stack,size,category,metadata" default:"line" doc:"by line, stacks that meet in the same lines of a library and the user are one group"`
	N      int    `query:"n" minimum:"1" maximum:"1000" default:"20" doc:"how many groups"`
}

func (s *Server) getTop(ctx context.Context, in *topInput) (*kept[*recording.Top], error) {
	return answerOf(ctx, s, in.ID, in.Device, func(r *recording.Recording) (*recording.Top, error) {
		top, err := r.Top(in.At, in.By, in.N)
		if err != nil {
			return nil, err
		}
		top.File = in.ID
		return top, nil
	})
}

type replayInput struct {
	ID          string                `path:"id" pattern:"^[0-9a-f]{64}$"`
	Device      int                   `query:"device" default:"-1"`
	Limit       given[bytesize.Bytes] `query:"limit_bytes" doc:"the most the allocator may reserve, at least 2 MiB"`
	Expandable  string                `query:"expandable_segments" enum:"true,false" doc:"as recorded if absent"`
	MaxSplit    given[bytesize.Bytes] `query:"max_split_size_bytes" doc:"max_split_size_mb, in bytes; at least 20 MiB"`
	GCThreshold given[float64]        `query:"gc_threshold" doc:"garbage_collection_threshold, a share of limit_bytes between 0 and 1"`
	Roundup     given[int64]          `query:"roundup" doc:"roundup_power2_divisions, a power of two"`
	GraphPool   given[bytesize.Bytes] `query:"graph_pool_bytes" doc:"what the pool of CUDA graphs starts with (triton.cudagraph_initial_mempool_allocation_gb)"`
}

func (s *Server) getReplay(ctx context.Context, in *replayInput) (*kept[*recording.Replay], error) {
	return answerOf(ctx, s, in.ID, in.Device, func(r *recording.Recording) (*recording.Replay, error) {
		whatIf := recording.WhatIf{
			Limit: in.Limit.pointer(), MaxSplitSize: in.MaxSplit.pointer(), GCThreshold: in.GCThreshold.pointer(), Roundup: in.Roundup.pointer(),
			GraphPool: in.GraphPool.pointer(),
		}
		if in.Expandable != "" {
			expandable := in.Expandable == "true"
			whatIf.ExpandableSegments = &expandable
		}
		answer, err := r.Replay(whatIf, workbudget.New(math.MaxInt64, ctx.Err))
		var wrong *recording.WhatIfError
		if errors.As(err, &wrong) {
			return nil, bad("query."+replayKeys[wrong.Setting], "it is %s", wrong.Why)
		}
		return answer, err
	})
}

// replayKeys are the parameters of a replay by what they set.
var replayKeys = map[string]string{
	recording.LimitSetting: "limit_bytes", recording.MaxSplitSizeSetting: "max_split_size_bytes",
	recording.GCThresholdSetting: "gc_threshold", recording.RoundupSetting: "roundup",
	recording.GraphPoolSetting: "graph_pool_bytes",
}
