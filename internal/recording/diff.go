package recording

import "memorymark/internal/trace"

// Diff is what is live in one snapshot and not in another.
type Diff struct {
	Before  DiffSide     `json:"before"`
	After   DiffSide     `json:"after"`
	Changes []DiffChange `json:"changes"`
	Left    int          `json:"changes_left_out,omitempty"`
}

// DiffSide is one of the two.
type DiffSide struct {
	File   string `json:"file"`
	Device int    `json:"device"`
	At     string `json:"at"`
	Event  int    `json:"event"`
	Bytes  int64  `json:"live_bytes"`
	Count  int    `json:"live_count"`
}

// DiffChange is the change of one stack.
type DiffChange struct {
	Bytes       int64 `json:"change_bytes"`
	BeforeBytes int64 `json:"before_bytes"`
	AfterBytes  int64 `json:"after_bytes"`
	BeforeCount int   `json:"before_count"`
	AfterCount  int   `json:"after_count"`
	Place
}

// NewDiff returns the n largest changes of live memory at a moment, by stack; 0
// returns all.
func NewDiff(before, after *Recording, at string, n int) (*Diff, error) {
	var sides [2]DiffSide
	var live [2][]trace.Lifetime
	for i, r := range []*Recording{before, after} {
		event, err := r.Event(at)
		if err != nil {
			return nil, err
		}
		live[i] = trace.Live(r.Lifetimes(), event)
		level := trace.At(live[i], event)
		sides[i] = DiffSide{Device: r.Device, At: at, Event: event, Bytes: level.Bytes, Count: level.Count}
	}
	d := &Diff{Before: sides[0], After: sides[1], Changes: []DiffChange{}}
	changes := trace.Diff(before.Tables, live[0], after.Tables, live[1])
	if n > 0 && n < len(changes) {
		d.Left = len(changes) - n
		changes = changes[:n]
	}
	for _, c := range changes {
		d.Changes = append(d.Changes, DiffChange{
			Bytes: c.Bytes(), BeforeBytes: c.Before.Bytes, AfterBytes: c.After.Bytes,
			BeforeCount: c.Before.Count, AfterCount: c.After.Count,
			Place: newPlace(c.Frames, c.For, c.Old),
		})
	}
	return d, nil
}
