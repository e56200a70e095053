package recording

import (
	"math"

	"memorymark/internal/evidence"
	"memorymark/internal/trace"
)

// Compare is a comparison of the requests of two traces: a prediction and a
// measurement, or any two.
type Compare struct {
	Predicted CompareSide `json:"predicted"`
	Measured  CompareSide `json:"measured"`
	// Engine is the evidence of the measured side, if known.
	Engine evidence.Engine `json:"engine,omitempty"`
	// PeakChange is the peak of the prediction less that of the measurement.
	PeakChange int64 `json:"peak_difference_bytes"`
	Same       bool  `json:"same"`         // up to the end of the shorter one
	Equal      int   `json:"equal"`        // requests that correspond
	Before     int   `json:"equal_before"` // the first difference
	// BeforeShare is the share of the measured requests that are equal before
	// the first difference, 0 to 1.
	BeforeShare float64             `json:"equal_before_share"`
	Reordered   int                 `json:"reordered"` // runs of frees whose order differs, which does not count
	Stretches   int                 `json:"stretches"` // stretches that differ
	Differences []CompareDifference `json:"differences"`
	Left        int                 `json:"differences_left_out,omitempty"`
}

// CompareSide is one of the two.
type CompareSide struct {
	File      string `json:"file"`
	Device    int    `json:"device"`
	Requests  int    `json:"requests"` // allocations and frees
	PeakBytes int64  `json:"peak_bytes"`
	PeakEvent int    `json:"peak_event"`
	// Beyond are the requests after the end of the other.
	Beyond int `json:"beyond,omitempty"`
}

// CompareDifference is a stretch where the traces differ.
type CompareDifference struct {
	Predicted CompareRequests `json:"predicted"`
	Measured  CompareRequests `json:"measured"`
	// Place is the code behind the first request: the measurement's if it has
	// one there with a stack.
	Place
	Around []CompareRow `json:"-"` // rows to show of the first difference
}

// CompareRequests are the requests of a side that the other does not have.
type CompareRequests struct {
	Event    int              `json:"event"` // where the stretch begins
	Count    int              `json:"count"`
	Bytes    int64            `json:"bytes"`    // allocated less freed
	Requests []CompareRequest `json:"requests"` // the first of them
}

// CompareRequest is an allocation or a free.
type CompareRequest struct {
	Event      int    `json:"event"`
	Action     string `json:"action"` // "alloc" or "free"
	Bytes      int64  `json:"bytes"`
	Allocation int    `json:"allocation"` // counts up from 0 in each file
	Place
}

// listedRequests is how many requests of a stretch are listed.
const listedRequests = 10

// CompareInput is what NewCompare needs of a side.
type CompareInput struct {
	File  string
	Trace *trace.Trace
}

// NewCompare prepares the first n differences (0: all), with around requests on
// each side of the first.
func NewCompare(predicted, measured CompareInput, c *trace.Comparison, n, around int) *Compare {
	p := comparison{[2]*trace.Trace{predicted.Trace, measured.Trace}, c}
	out := &Compare{
		Predicted: p.side(0, predicted.File), Measured: p.side(1, measured.File), Same: !c.Differ(),
		Equal: c.Equal, Before: c.Before, Reordered: len(c.Reordered), Stretches: len(c.Stretches),
		Differences: []CompareDifference{},
	}
	out.PeakChange = out.Predicted.PeakBytes - out.Measured.PeakBytes
	if out.Measured.Requests > 0 {
		out.BeforeShare = math.Round(float64(c.Before)/float64(out.Measured.Requests)*1e6) / 1e6
	}
	for i, s := range c.Stretches {
		if n > 0 && i == n {
			out.Left = len(c.Stretches) - n
			break
		}
		d := CompareDifference{Predicted: p.requests(0, s), Measured: p.requests(1, s)}
		d.Place = p.place(s)
		if i == 0 {
			d.Around = p.around(s, around)
		}
		out.Differences = append(out.Differences, d)
	}
	return out
}

// comparison is the input of the answer.
type comparison struct {
	traces [2]*trace.Trace
	*trace.Comparison
}

func (p *comparison) side(i int, file string) CompareSide {
	peak := p.traces[i].Peak()
	return CompareSide{
		File: file, Device: p.traces[i].Device, Requests: len(p.Requests[i]),
		PeakBytes: peak.Bytes, PeakEvent: peak.Event, Beyond: p.Beyond[i],
	}
}

func (p *comparison) requests(side int, s trace.Stretch) CompareRequests {
	from := s.From[side]
	out := CompareRequests{
		Event: p.Requests[side][from].Event, Count: s.To[side] - from, Requests: []CompareRequest{},
	}
	for i := from; i < s.To[side]; i++ {
		r := p.Requests[side][i]
		if r.Free {
			out.Bytes -= r.Size
		} else {
			out.Bytes += r.Size
		}
		if len(out.Requests) < listedRequests {
			listed := p.request(side, i)
			listed.Frames = nil // the first one's are in the difference
			out.Requests = append(out.Requests, *listed)
		}
	}
	return out
}

// request describes a request, nil if there is none.
func (p *comparison) request(side, i int) *CompareRequest {
	if i >= len(p.Requests[side]) {
		return nil
	}
	r, t := p.Requests[side][i], p.traces[side]
	out := &CompareRequest{Event: r.Event, Action: "alloc", Bytes: r.Size, Allocation: int(r.ID)}
	if r.Free {
		out.Action = "free"
	}
	out.Place = newPlace(t.Stacks.Frames(r.Stack), t.Events[r.Event].For, false)
	return out
}

// place returns where a stretch begins: in the measurement if it has requests
// and a stack there, else in the prediction.
func (p *comparison) place(s trace.Stretch) Place {
	var best *CompareRequest
	for _, side := range []int{1, 0} {
		if s.From[side] == s.To[side] {
			continue
		}
		if r := p.request(side, s.From[side]); best == nil || len(best.Frames) == 0 {
			best = r
		}
	}
	return best.Place
}

// CompareRow is a pair of requests; either may be nil.
type CompareRow struct {
	Sides   [2]*CompareRequest
	Differs bool
}

// around lists a stretch with n requests before it and after it.
func (p *comparison) around(s trace.Stretch, n int) []CompareRow {
	var out []CompareRow
	add := func(a, b *CompareRequest, differs bool) {
		if a != nil || b != nil {
			out = append(out, CompareRow{[2]*CompareRequest{a, b}, differs})
		}
	}
	for i := min(n, s.From[0], s.From[1]); i > 0; i-- {
		add(p.request(0, s.From[0]-i), p.request(1, s.From[1]-i), false)
	}
	length := [2]int{s.To[0] - s.From[0], s.To[1] - s.From[1]}
	for i := range min(max(length[0], length[1]), listedRequests) {
		var row [2]*CompareRequest
		for side := range row {
			if i < length[side] {
				row[side] = p.request(side, s.From[side]+i)
			}
		}
		add(row[0], row[1], true)
	}
	if max(length[0], length[1]) > listedRequests {
		return out // what follows is too far away
	}
	for i := range n {
		add(p.request(0, s.To[0]+i), p.request(1, s.To[1]+i), false)
	}
	return out
}
