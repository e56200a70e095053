package recording

import (
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/trace"
)

// ReplayPeaks are the bytes of a replay.
type ReplayPeaks struct {
	PeakRequested     int64 `json:"peak_requested"`
	PeakAllocated     int64 `json:"peak_allocated"`
	PeakReserved      int64 `json:"peak_reserved"`
	EndReserved       int64 `json:"end_reserved"`
	SegmentsRequested int64 `json:"segments_requested_bytes"`
	Retries           int64 `json:"retries"`
}

func newReplayPeaks(o *allocator.Outcome) ReplayPeaks {
	return ReplayPeaks{
		PeakRequested:     o.Stats.RequestedBytes[allocator.All].Peak,
		PeakAllocated:     o.Stats.AllocatedBytes[allocator.All].Peak,
		PeakReserved:      o.Stats.ReservedBytes[allocator.All].Peak,
		EndReserved:       o.Stats.ReservedBytes[allocator.All].Current,
		SegmentsRequested: o.SegmentBytes,
		Retries:           o.Stats.Retries,
	}
}

// Replay is the answer of snapshot replay. The peaks are those of the replay;
// Recorded has the recorded ones if settings were changed.
type Replay struct {
	Device   int    `json:"device"`
	Events   int    `json:"events"`
	Settings string `json:"settings"` // in the syntax of PYTORCH_CUDA_ALLOC_CONF
	Limit    int64  `json:"limit_bytes,omitempty"`
	// GraphPool is what the pool of CUDA graphs has from the start.
	GraphPool int64 `json:"graph_pool_bytes,omitempty"`
	ReplayPeaks
	Fits bool `json:"fits"`
	// RanOut is the first event at which the recording ran out of memory, nil if it did
	// not. What the program would have requested after it is not known.
	RanOut           *int           `json:"out_of_memory_event,omitempty" doc:"the first event at which the recording ran out of memory; what the program would have requested after it is not known, so the whole run may need more"`
	MatchesRecording bool           `json:"matches_recording"`
	FirstDifference  *Difference    `json:"first_difference"`
	Failure          *FailedRequest `json:"failure,omitempty"`
	Recorded         *ReplayPeaks   `json:"recorded,omitempty"`
	Fragmentation    *Fragmentation `json:"fragmentation,omitempty"`
}

// Difference is where a replay and its recording diverge.
type Difference struct {
	Event     int           `json:"event"`
	Recorded  string        `json:"recorded"`
	Simulated string        `json:"simulated"`
	Frames    []trace.Frame `json:"frames,omitempty"`
}

// FailedRequest is a request that failed.
type FailedRequest struct {
	Event     int   `json:"event"`
	Requested int64 `json:"requested_bytes"`
	Segment   int64 `json:"segment_bytes"`
	Reserved  int64 `json:"reserved_bytes"`
	Allocated int64 `json:"allocated_bytes"`
	Place     Place `json:"place"`
}

// Fragmentation is memory that is held but unusable.
type Fragmentation struct {
	Event   int     `json:"event"`
	Score   float64 `json:"score"` // share of reserved bytes that is stuck
	Free    int64   `json:"free_bytes"`
	Stuck   int64   `json:"stuck_bytes"`
	Largest int64   `json:"largest_free_bytes"`
	Pieces  int     `json:"free_pieces"`
	Pins    []Pin   `json:"pins"`
}

// Pin is a segment with stuck memory and the block that keeps it from being
// returned.
type Pin struct {
	Address uint64 `json:"address"`
	Size    int64  `json:"segment_bytes"`
	Stuck   int64  `json:"stuck_bytes"`
	InUse   int64  `json:"in_use_bytes"`
	Blocks  int    `json:"blocks_in_use"`
	Place   Place  `json:"smallest_block"` // the smallest block in use
}

// maxPins is how many pinned segments are listed.
const maxPins = 10

// newReplay makes the answer from the outcome of a replay. Without a change the
// outcome is the recorded one.
func newReplay(t *trace.Trace, r *allocator.Replay, out *allocator.Outcome, change allocator.WhatIf) *Replay {
	recorded := r.Recorded()
	settings := &t.Settings
	if change.Settings != nil {
		settings = change.Settings
	}
	a := &Replay{
		Device: t.Device, Events: len(t.Events), Settings: settings.String(), Limit: change.Limit,
		GraphPool: change.GraphPool, ReplayPeaks: newReplayPeaks(out),
		Fits: out.Fits(), MatchesRecording: recorded.Difference == nil, FirstDifference: newDifference(t, recorded.Difference),
	}
	if at := slices.IndexFunc(t.Events, func(e trace.Event) bool { return e.Action == trace.OutOfMemory }); at >= 0 {
		a.RanOut = &at
	}
	if out == recorded {
		a.Fits = a.RanOut == nil
	} else {
		p := newReplayPeaks(recorded)
		a.Recorded = &p
	}
	if out.Failed != nil {
		a.Failure = newFailure(t, out)
	}
	return a
}

func newDifference(t *trace.Trace, d *allocator.Difference) *Difference {
	if d == nil {
		return nil
	}
	out := &Difference{Event: d.Event, Recorded: d.Recorded, Simulated: d.Simulated}
	if d.Event < len(t.Events) {
		out.Frames = t.Stacks.Frames(t.Events[d.Event].Stack)
	}
	return out
}

func newFailure(t *trace.Trace, o *allocator.Outcome) *FailedRequest {
	f := &FailedRequest{
		Event: o.Events, Requested: o.Failed.Requested, Segment: o.Failed.Segment,
		Reserved: o.Failed.Reserved, Allocated: o.Failed.Allocated,
	}
	if o.Events < len(t.Events) { // the initial allocations alone can be too much
		e := &t.Events[o.Events]
		f.Place = newPlace(t.Stacks.Frames(e.Stack), e.For, false)
	}
	return f
}

// addFragmentation adds what the allocator held after an event.
func (a *Replay) addFragmentation(t *trace.Trace, event int, f allocator.Fragmentation) {
	out := &Fragmentation{
		Event: event, Score: f.Score(), Free: f.Free, Stuck: f.Stuck, Largest: f.Largest, Pieces: f.Pieces,
		Pins: []Pin{},
	}
	for _, p := range f.Pins[:min(maxPins, len(f.Pins))] {
		b := p.Blocks[0]
		out.Pins = append(out.Pins, Pin{
			Address: p.Segment.Addr, Size: p.Segment.Size, Stuck: p.Stuck, InUse: p.InUse, Blocks: len(p.Blocks),
			Place: newPlace(t.Stacks.Frames(b.Stack), trace.Unknown, int(b.ID) < len(t.Initial)),
		})
	}
	a.Fragmentation = out
}
