package recording

import (
	"errors"

	"memorymark/internal/trace"
)

// Segments is the memory of the allocator after an event.
type Segments struct {
	Event    int           `json:"event"`
	Totals   *SegmentsInfo `json:"totals"`
	Segments []Segment     `json:"segments" doc:"by address"`
}

// ErrNotReplayed says that only the end of a recording is known, because the
// simulation does not follow it.
var ErrNotReplayed = errors.New("the allocator's state is known only at the end, because the simulation cannot follow this recording")

// segmentsAt returns the allocator's segments after an event.
func (r *Recording) segmentsAt(event int) ([]trace.Segment, error) {
	if event == len(r.Events)-1 && r.Final != nil {
		return r.Final, nil
	}
	replay := r.faithful()
	if replay == nil {
		return nil, ErrNotReplayed
	}
	return replay.HeldAfter(event), nil
}

// Segments returns the memory of the allocator at a moment.
func (r *Recording) Segments(at string) (*Segments, error) {
	event, err := r.Event(at)
	if err != nil {
		return nil, err
	}
	held, err := r.segmentsAt(event)
	if err != nil {
		return nil, err
	}
	return &Segments{event, newSegmentsInfo(held), newSegments(held, r.Lifetimes())}, nil
}

// Segment is a segment of the allocator.
type Segment struct {
	Address    uint64 `json:"address"`
	Bytes      int64  `json:"bytes"`
	Stream     int    `json:"stream"`
	Small      bool   `json:"small,omitempty"`      // of the pool of small allocations
	Expandable bool   `json:"expandable,omitempty"` //
	Private    bool   `json:"private,omitempty"`    // of a private pool, such as a CUDA graph's
	// Blocks tile the segment: offset, bytes, state, requested bytes, allocation
	// and category of each, one after the other. States are 0 free, 1 in use, 2
	// freed but waiting for another stream; a free block has allocation -1.
	// Categories are numbered as the colours of a timeline, 0 if unknown.
	Blocks []int64 `json:"blocks"`
}

// newSegments describes segments. The lifetimes are those of the recording,
// classified.
func newSegments(segments []trace.Segment, lifetimes []trace.Lifetime) []Segment {
	out := make([]Segment, len(segments))
	for i := range segments {
		s := &segments[i]
		out[i] = Segment{
			Address: s.Addr, Bytes: s.Size, Stream: int(s.Stream), Small: s.Small, Expandable: s.Expandable,
			Private: s.Pool != trace.PoolID{}, Blocks: make([]int64, 0, 6*len(s.Blocks)),
		}
		for _, b := range s.Blocks {
			requested, id, what := b.Requested, int64(b.ID), trace.Unknown
			if b.State == trace.Inactive {
				requested, id = 0, -1
			} else if 0 <= id && id < int64(len(lifetimes)) {
				what = lifetimes[id].For
			}
			out[i].Blocks = append(out[i].Blocks, int64(b.Addr-s.Addr), b.Size, int64(b.State), requested, id, int64(what))
		}
	}
	return out
}

// newSegmentsInfo sums up segments, nil if unknown.
func newSegmentsInfo(segments []trace.Segment) *SegmentsInfo {
	if segments == nil {
		return nil
	}
	info := &SegmentsInfo{Count: len(segments)}
	for i := range segments {
		info.Bytes += segments[i].Size
		for _, b := range segments[i].Blocks {
			if b.State != trace.Inactive {
				info.UsedBytes += b.Size
				continue
			}
			info.FreeBytes += b.Size
			info.LargestFree = max(info.LargestFree, b.Size)
		}
	}
	return info
}
