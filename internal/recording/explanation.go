package recording

import (
	"memorymark/internal/allocator"
	"memorymark/internal/trace"
)

// Explanation says why an allocation failed and which settings would avoid it.
// It is the result of replays of the recording, which does not contain later
// requests.
type Explanation struct {
	Segment     int64    `json:"segment_bytes"` // requested from the driver
	Reserved    int64    `json:"reserved_bytes"`
	Allocated   int64    `json:"allocated_bytes"`
	Free        int64    `json:"free_bytes"`
	Pieces      int      `json:"free_pieces"`
	LargestFree int64    `json:"largest_free_bytes"`
	AtLeast     int64    `json:"capacity_at_least_bytes"` // the lower bound that the recording shows
	Below       int64    `json:"capacity_below_bytes"`
	Capped      bool     `json:"limit_and_not_device"` // the device had the memory, but a limit applied
	Remedies    []Remedy `json:"remedies,omitempty"`   // the first is the recorded settings
}

// Remedy is an allocator setting and how much memory the same requests, up to
// the one that failed, need with it.
type Remedy struct {
	Settings string `json:"settings"`
	Needs    int64  `json:"needs_bytes"`
	// Helps says whether that request would succeed: yes, no, or maybe, since
	// the recording only bounds the limit. The whole run may need more.
	Helps string `json:"helps"`
}

// explain examines a recorded out-of-memory error. Only the first one of a
// recording gets remedies: what the program did after it does not show what it
// would have done otherwise.
func explain(t *trace.Trace, r *allocator.Replay, event int) *Explanation {
	e := &t.Events[event]
	held := allocator.Fragment(r.HeldAfter(event))
	c := r.Recorded().Capacity
	x := &Explanation{
		Segment: allocator.AllocationSize(e.Size), Reserved: held.Reserved, Allocated: held.Allocated, Free: held.Free,
		Pieces: held.Pieces, LargestFree: held.Largest, AtLeast: c.AtLeast, Below: c.Below,
	}
	x.Capped = t.Notes[e.Note].DeviceFree >= x.Segment
	for i := range event {
		if t.Events[i].Action == trace.OutOfMemory {
			return x
		}
	}
	for _, trial := range r.Alternatives() {
		x.Remedies = append(x.Remedies, Remedy{
			Settings: trial.Settings.String(), Needs: trial.Needs, Helps: helps[trial.On(c)],
		})
	}
	return x
}

var helps = map[allocator.CardFit]string{allocator.Fits: "yes", allocator.MayFit: "maybe", allocator.DoesNotFit: "no"}
