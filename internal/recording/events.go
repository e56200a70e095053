package recording

import "memorymark/internal/trace"

// EventRow is an event of a recording in JSON.
type EventRow struct {
	Event      int    `json:"event"` // its number
	Action     string `json:"action"`
	Micros     *int64 `json:"elapsed_us,omitempty"` // since the first event, absent if not recorded
	Address    uint64 `json:"address,omitempty"`
	Bytes      int64  `json:"bytes"`
	Stream     int    `json:"stream"`
	Allocation *int   `json:"allocation,omitempty"` // which one it belongs to
	Born       *int   `json:"born,omitempty"`       // event of that allocation, -1 for before the recording
	Freed      *int   `json:"freed,omitempty"`      // event of that allocation, absent if it never is
	Metadata   string `json:"metadata,omitempty"`   // what the program said with the event
	Place
}

// Describe describes events of the recording.
func (r *Recording) Describe(events []int) []EventRow {
	t, lifetimes := r.Trace, r.Lifetimes()
	var start int64
	for i := range t.Events {
		if start = t.Events[i].Time; start > 0 {
			break
		}
	}
	out := make([]EventRow, len(events))
	for i, n := range events {
		e := &t.Events[n]
		row := EventRow{Event: n, Action: e.Action.String(), Address: e.Addr, Bytes: e.Size, Stream: int(e.Stream), Metadata: t.Notes[e.Note].UserMetadata}
		if e.Time > 0 {
			micros := e.Time - start
			row.Micros = &micros
		}
		what := e.For
		if e.ID != trace.None && int(e.ID) < len(lifetimes) {
			l := &lifetimes[e.ID]
			id := int(e.ID)
			what, row.Allocation, row.Born = l.For, &id, &l.Alloc
			if l.Freed < len(t.Events) {
				row.Freed = &l.Freed
			}
		}
		row.Place = newPlace(t.Stacks.Frames(e.Stack), what, false)
		out[i] = row
	}
	return out
}
