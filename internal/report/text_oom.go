package report

import (
	"fmt"
	"io"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// Explanation says why an allocation failed and what would have helped. All of
// it comes from replaying the recording.
type Explanation struct {
	Segment     int64    `json:"segment_bytes"` // what the allocator asked the driver for
	Reserved    int64    `json:"reserved_bytes"`
	Allocated   int64    `json:"allocated_bytes"`
	Free        int64    `json:"free_bytes"`
	Pieces      int      `json:"free_pieces"`
	LargestFree int64    `json:"largest_free_bytes"`
	AtLeast     int64    `json:"capacity_at_least_bytes"` // what the recording shows of the limit
	Below       int64    `json:"capacity_below_bytes"`
	Capped      bool     `json:"limit_and_not_device"` // the device had the memory, a limit forbade it
	Remedies    []Remedy `json:"remedies,omitempty"`   // the first is the recorded settings
}

// Remedy is an allocator setting and how much memory the same requests, up to
// the one that failed, need with it.
type Remedy struct {
	Settings string `json:"settings"`
	Needs    int64  `json:"needs_bytes"`
	Helps    string `json:"helps"` // yes, no, or maybe: the recording only bounds the limit
}

// Explain examines a recorded out-of-memory error. Only the first one of a
// recording gets remedies: what the program did after it says nothing of what
// it would have done without.
func Explain(t *trace.Trace, r *allocator.Replay, event int) *Explanation {
	e := &t.Events[event]
	held := allocator.Fragment(r.HeldAfter(event))
	c := r.Recorded().Capacity
	x := &Explanation{
		Segment: allocator.SegmentSize(e.Size), Reserved: held.Reserved, Allocated: held.Allocated, Free: held.Free,
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

var helps = map[allocator.Verdict]string{allocator.Fits: "yes", allocator.MayFit: "maybe", allocator.DoesNotFit: "no"}

func (x *Explanation) write(w io.Writer, width int) {
	fmt.Fprintf(w, "\n  %s was reserved: %s in use and %s free, in %s of which the largest is %s.\n",
		size(x.Reserved), size(x.Allocated), size(x.Free), plural(x.Pieces, "piece"), size(x.LargestFree))
	fmt.Fprintf(w, "  None holds the request, so the allocator wanted a segment of %s more, %s in all.\n",
		size(x.Segment), size(x.Reserved+x.Segment))
	if x.Capped {
		fmt.Fprintf(w, "  The device had that much. A limit forbade it (set_per_process_memory_fraction), which the\n"+
			"  recording shows to be at least %s and below %s.\n", exact(x.AtLeast), exact(x.Below))
	} else {
		fmt.Fprintf(w, "  The device did not have it: the recording shows room for at least %s and less than %s.\n",
			exact(x.AtLeast), exact(x.Below))
	}
	if len(x.Remedies) == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %s (replayed; what the program would have asked for next is not in the recording):\n\n",
		heading("What would have met this request"))
	t := table{columns: []column{{title: "PYTORCH_CUDA_ALLOC_CONF"}, {title: "NEEDS", right: true}, {title: "WOULD HELP"}}}
	for _, r := range x.Remedies {
		t.rows = append(t.rows, row{cells: []string{r.Settings, exact(r.Needs), r.Helps}})
	}
	t.write(w, width)
	fmt.Fprintf(w, "\n  With the settings as they were, a card or limit of %s would have met it.\n", exact(x.Remedies[0].Needs))
}

// exact prints an amount with what two decimals would hide: limits differ by
// little.
func exact(n int64) string { return fmt.Sprintf("%.3f GiB", float64(n)/float64(bytesize.GiB)) }
