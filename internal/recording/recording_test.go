package recording

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/snapshot"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
)

// open opens a recording of a GPT-2 that ran out of memory.
func open(t *testing.T) *Recording {
	t.Helper()
	s := tracetest.Read(t, "../../testdata/truth/snapshots/gpt2_oom.pickle.xz")
	tr, err := Choose(s, BusiestDevice)
	if err != nil {
		t.Fatal(err)
	}
	return New(tr)
}

func TestChoose(t *testing.T) {
	tables := trace.NewTables()
	s := &snapshot.Snapshot{Devices: []*trace.Trace{trace.New(0, tables)}}
	if _, err := Choose(s, BusiestDevice); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty: %v", err)
	}
	busy := trace.New(1, tables)
	busy.Events = make([]trace.Event, 3)
	s.Devices = append(s.Devices, busy)
	if got, err := Choose(s, BusiestDevice); err != nil || got != busy {
		t.Errorf("%v, %v", got, err)
	}
	var missing *NoDeviceError
	if _, err := Choose(s, 0); !errors.As(err, &missing) || !slices.Equal(missing.Known, []int{1}) {
		t.Errorf("device 0: %v", err)
	}
}

// TestInfoMemory checks that describing a long recording needs about as much
// memory as its events, which have 40 bytes each.
func TestInfoMemory(t *testing.T) {
	s := tracetest.Read(t, "../../testdata/truth/snapshots/gpt2_py_30steps.pickle.xz")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := New(s.Devices[0]).Info(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(s.Devices[0].Events)); got > 48 {
		t.Errorf("%d bytes were allocated for each event", got)
	}
}

func TestEvent(t *testing.T) {
	r := open(t)
	oom, err := r.Event("oom")
	if err != nil || r.Events[oom].Action != trace.OutOfMemory {
		t.Errorf("oom: %d, %v", oom, err)
	}
	if end, err := r.Event("end"); err != nil || end != len(r.Events)-1 {
		t.Errorf("end: %d, %v", end, err)
	}
	for _, at := range []string{"noon", "-1", "99999999", ""} {
		var wrong *MomentError
		if _, err := r.Event(at); !errors.As(err, &wrong) || wrong.At != at {
			t.Errorf("%q: %v", at, err)
		}
	}
}

// The pages of a search are the search.
func TestFind(t *testing.T) {
	r := open(t)
	big := Search{MinBytes: 1 << 20, Actions: []trace.Action{trace.Alloc}}
	all, next := r.Find(big, len(r.Events))
	if next != -1 || len(all) < 10 {
		t.Fatalf("%d found, next %d", len(all), next)
	}
	for _, i := range all {
		if e := r.Events[i]; e.Size < 1<<20 || e.Action != trace.Alloc {
			t.Errorf("%+v was found", e)
		}
	}
	var paged []int
	for from := 0; from >= 0; {
		s := big
		s.From = from
		var page []int
		page, from = r.Find(s, 7)
		paged = append(paged, page...)
	}
	if !slices.Equal(paged, all) {
		t.Errorf("%d in pages, %d at once", len(paged), len(all))
	}
	framed, _ := r.Find(Search{Frame: "MODELING_GPT2"}, 5)
	if len(framed) != 5 {
		t.Fatalf("%d events in modeling_gpt2", len(framed))
	}
	for _, i := range framed {
		frames := r.Stacks.Frames(r.Events[i].Stack)
		if !slices.ContainsFunc(frames, func(f trace.Frame) bool { return strings.Contains(f.File, "modeling_gpt2") }) {
			t.Errorf("event %d has %+v", i, frames)
		}
	}
	e := r.Events[all[3]]
	inside, _ := r.Find(Search{Address: e.Addr + uint64(e.Size) - 1, Allocation: &e.ID}, 10)
	if !slices.Contains(inside, all[3]) || len(inside) > 3 {
		t.Errorf("the last byte of event %d is in %v", all[3], inside)
	}
}

// The segments at the end are the file's; in between they come from the
// simulation, and add up to the levels.
func TestSegments(t *testing.T) {
	r := open(t)
	end, err := r.Segments("end")
	if err != nil || len(end.Segments) != len(r.Final) {
		t.Errorf("%+v at the end, %d in the file, %v", end, len(r.Final), err)
	}
	for _, event := range []int{0, len(r.Events) / 2} {
		held, err := r.Segments(strconv.Itoa(event))
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, s := range held.Segments {
			sum += s.Bytes
		}
		if want := r.Levels().Reserved[event]; sum != want {
			t.Errorf("event %d: %d in segments, %d reserved", event, sum, want)
		}
	}
}

func TestReplay(t *testing.T) {
	r := open(t)
	recorded, err := r.Replay(WhatIf{}, nil)
	if err != nil || !recorded.MatchesRecording {
		t.Fatalf("%+v, %v", recorded, err)
	}
	half := bytesize.Bytes(recorded.PeakReserved / 2)
	small, err := r.Replay(WhatIf{Limit: &half}, nil)
	if err != nil || small.Fits || small.Failure == nil {
		t.Errorf("with half of it: %+v, %v", small, err)
	}
	tl, err := r.Timeline(timeline.Options{Columns: 100})
	if err != nil || tl.Peak.Bytes != r.Peak().Bytes {
		t.Errorf("peak %+v, %v", tl.Peak, err)
	}
	if d, err := NewDiff(r, r, "peak", 0); err != nil || len(d.Changes) != 0 {
		t.Errorf("a recording differs from itself: %+v, %v", d, err)
	}
}

// TestReplayOddRecordings replays files that once made it panic: PyTorch would
// not write them.
func TestReplayOddRecordings(t *testing.T) {
	recordings := map[string]*trace.Trace{}
	for _, d := range tracetest.Read(t, "../snapshot/testdata/shapes/extremes.p4.pickle").Devices {
		recordings["extremes on device "+strconv.Itoa(d.Device)] = d
	}
	full := trace.New(0, trace.NewTables())
	full.Final = []trace.Segment{{Addr: 1 << 40, Size: 40 << 20, Blocks: []trace.Block{
		{Addr: 1 << 40, Size: 40 << 20, Requested: 40 << 20, State: trace.Allocated},
	}}}
	recordings["no events, and more than the limit from the beginning"] = full
	empty := trace.New(0, trace.NewTables())
	empty.Events = []trace.Event{{Action: trace.SegmentUnmap, Addr: 1 << 40}}
	empty.Final = []trace.Segment{}
	recordings["a range of no bytes is unmapped"] = empty
	free := trace.New(0, trace.NewTables())
	free.Final = []trace.Segment{{Addr: 1 << 40, Size: 30 << 20, Expandable: true, Blocks: []trace.Block{{Addr: 1 << 40, Size: 30 << 20}}}}
	recordings["a page and a half, of which nothing is in use"] = free
	limit, expandable := 20*bytesize.MiB, true
	for name, tr := range recordings {
		t.Run(name, func(t *testing.T) {
			tr.Link()
			r := New(tr)
			for _, what := range []WhatIf{{}, {Limit: &limit}, {ExpandableSegments: &expandable}} {
				if answer, err := r.Replay(what, nil); err != nil {
					t.Log(err)
				} else if tr == full && what.Limit != nil && answer.Fits {
					t.Error("40 MiB fit into 20")
				}
			}
		})
	}
}

func TestLabel(t *testing.T) {
	tests := []struct {
		want   string
		frames []trace.Frame
	}{
		{"no stack", nil},
		{"no stack", []trace.Frame{{File: "torch/nn/modules/linear.py", Line: 134, Name: "forward"}}},
		{"model.py:20 forward", []trace.Frame{{File: "torch/nn/modules/linear.py", Line: 134, Name: "forward"}, {File: "model.py", Line: 20, Name: "forward"}}},
		{"transformer.h.*.attn.c_attn", []trace.Frame{{File: "GPT2LMHeadModel", Name: "transformer.h.11.attn.c_attn"}}},
		{"layers.*", []trace.Frame{{File: "Model", Name: "layers.3"}}},
	}
	for _, test := range tests {
		if got := label(test.frames); got != test.want {
			t.Errorf("label(%v) = %q, want %q", test.frames, got, test.want)
		}
	}
}

func TestKindOf(t *testing.T) {
	linear := trace.Frame{File: "/x/site-packages/torch/nn/modules/linear.py", Line: 134, Name: "forward"}
	tests := map[string][]trace.Frame{
		Recorded:  {linear, {File: "train.py", Line: 9, Name: "main"}},
		Emulated:  {{File: "/root/.cache/memorymark/emulate-python-3e65/memorymark_emulate/shadows.py", Line: 171, Name: "call"}, linear},
		Predicted: {{File: "GPT2LMHeadModel", Name: "transformer.h.0.attn"}},
	}
	for want, frames := range tests {
		tr := trace.New(0, trace.NewTables())
		var ids []trace.FrameID
		for _, f := range frames {
			ids = append(ids, tr.Stacks.AddFrame(f))
		}
		tr.Stacks.Add(ids)
		if got := KindOf(tr); got != want {
			t.Errorf("%v: %s, want %s", frames, got, want)
		}
	}
	if got := KindOf(trace.New(0, trace.NewTables())); got != Recorded {
		t.Errorf("without stacks: %s", got)
	}
}

// An ordinary snapshot has only the optimizer's marks; its stacks show the
// passes.
func TestPhases(t *testing.T) {
	tl, err := open(t).Timeline(timeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for _, s := range tl.Spans {
		count[s.Name]++
	}
	if count[trace.ForwardMark] != 7 || count[trace.BackwardMark] != 6 || count["Optimizer.step#AdamW.step"] != 6 {
		t.Errorf("phases %v; six steps and a forward pass that ran out of memory were recorded", count)
	}
}
