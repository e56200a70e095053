package trace_test

import (
	"testing"

	"memorymark/internal/trace"
)

// Annotations belong to what is live at their address, also if only a later event says that it was live before the recording.
func TestMetadata(t *testing.T) {
	tr := trace.New(0, trace.NewTables())
	saved := tr.AddNote(trace.Note{UserMetadata: "saved for MulBackward0"})
	weight := tr.AddNote(trace.Note{UserMetadata: "weight"})
	tr.Events = []trace.Event{
		{Action: trace.Annotated, Addr: 0x100, Note: weight}, // live before: freed below
		{Action: trace.Annotated, Addr: 0x900, Note: weight}, // of nothing that the recording knows
		{Action: trace.Alloc, Addr: 0x200, Size: 1, Note: weight},
		{Action: trace.Annotated, Addr: 0x200, Note: saved},
		{Action: trace.Annotated, Addr: 0x200, Note: saved},
		{Action: trace.FreeRequested, Addr: 0x100, Size: 1},
		{Action: trace.FreeCompleted, Addr: 0x100, Size: 1},
		{Action: trace.Annotated, Addr: 0x300, Note: saved}, // live before: still there at the end
		{Action: trace.FreeRequested, Addr: 0x200, Size: 1},
		{Action: trace.FreeCompleted, Addr: 0x200, Size: 1},
		{Action: trace.Alloc, Addr: 0x200, Size: 1},
	}
	tr.Final = []trace.Segment{{Addr: 0x200, Size: 0x200, Blocks: []trace.Block{
		{Addr: 0x200, Size: 0x100, Requested: 1, State: trace.Allocated},
		{Addr: 0x300, Size: 0x100, Requested: 1, State: trace.Allocated},
	}}}
	tr.Link()
	if err := tr.CheckValid(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		event int
		want  map[trace.ID]string // 0 was at 0x100, 1 at 0x300, 2 and 3 at 0x200
	}{
		{-1, map[trace.ID]string{}},
		{2, map[trace.ID]string{0: "weight", 2: "weight"}},
		{99, map[trace.ID]string{0: "weight", 1: "saved for MulBackward0", 2: "weight; saved for MulBackward0"}},
	} {
		got := tr.Metadata(c.event)
		if len(got) != len(c.want) {
			t.Errorf("up to event %d: %v, want %v", c.event, got, c.want)
		}
		for id, text := range c.want {
			if got[id] != text {
				t.Errorf("up to event %d: allocation %d has %q, want %q", c.event, id, got[id], text)
			}
		}
	}
}
