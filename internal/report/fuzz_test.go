package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/draw"
	"memorymark/internal/recording"
	"memorymark/internal/snapshot"
	"memorymark/internal/testmachine"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

// The budget of all answers about one small file together, in processor time
// and memory.
const (
	fuzzTime   = 10 * time.Second
	fuzzMemory = 1 << 30
)

// FuzzSnapshot computes every answer about files, read as the command line
// reads them.
func FuzzSnapshot(f *testing.F) {
	paths, err := filepath.Glob("../snapshot/testdata/shapes/*.p4.pickle")
	if err != nil || len(paths) == 0 {
		f.Fatal("there are no seeds: ", err)
	}
	for _, path := range paths {
		seed, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(seed))
	}
	f.Add(withEscapes(f))
	f.Fuzz(func(t *testing.T, file string) {
		defer watch(t)()
		s, err := snapshot.Read(strings.NewReader(file), snapshot.Limits{Bytes: 1 << 20, Events: 10_000, Memory: 64 << 20})
		if err != nil {
			return
		}
		for _, tr := range recording.Devices(s) {
			askAll(t, tr)
		}
	})
}

// withEscapes is a snapshot with an escape sequence in each of its names.
func withEscapes(f *testing.F) string {
	const clear = "\x1b[2J\u009b2J\x07"
	tr := trace.New(0, trace.NewTables())
	stack := tr.Stacks.Add([]trace.FrameID{tr.Stacks.AddFrame(trace.Frame{File: clear + ".py", Name: clear, Line: 1})})
	tr.Events = []trace.Event{
		{Action: trace.Alloc, Addr: 1 << 30, Size: 512, Stack: stack, Note: tr.AddNote(trace.Note{CompileContext: clear, UserMetadata: clear})},
		{Action: trace.OutOfMemory, Size: 512, Stack: stack},
	}
	tr.Marks = []trace.Mark{{Name: clear}}
	tr.Settings.Raw = clear
	tr.Link()
	var b strings.Builder
	if err := snapshot.Write(&b, &snapshot.Snapshot{Devices: []*trace.Trace{tr}}); err != nil {
		f.Fatal(err)
	}
	return b.String()
}

// FuzzRecording computes every answer about recordings that are valid except
// for a few changes: most randomly mutated files are refused early. See
// mutatedTrace.
func FuzzRecording(f *testing.F) {
	f.Add([]byte{0, 0}, []byte{10, 20, 30, 128, 40}, []byte{})
	f.Add([]byte{1, 3}, []byte{10, 20, 30, 128, 40, 129, 130}, []byte{0, 0, 2, 1, 5, 200})
	f.Add([]byte{2, 40}, []byte{60, 61, 62, 128, 129, 63, 64}, []byte{3, 3, 0, 4, 2, 1, 5, 1, 9})
	f.Add([]byte{7, 9}, []byte{90, 91, 128, 92, 129, 93}, []byte{6, 1, 1, 2, 2, 2})
	f.Fuzz(func(t *testing.T, settings, program, changes []byte) {
		if len(program) > 2000 || len(changes) > 300 {
			return
		}
		defer watch(t)()
		askAll(t, mutatedTrace(settings, program, changes))
	})
}

// watch starts measuring; the function it returns reports the cost.
func watch(t *testing.T) (done func()) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := testmachine.ProcessorTime(t)
	return func() {
		runtime.ReadMemStats(&after)
		if took := testmachine.ProcessorTime(t) - start; took > fuzzTime {
			t.Errorf("it took %v", took)
		}
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > fuzzMemory {
			t.Errorf("%d MiB were allocated", bytes>>20)
		}
	}
}

// askAll computes and writes every answer of the commands.
func askAll(t *testing.T, tr *trace.Trace) {
	r := recording.New(tr)
	info, err := r.Info()
	show(t, err, func() writer { return Info{&recording.Info{Devices: []recording.DeviceInfo{*info}}} })
	for _, at := range []string{"peak", "end", "oom"} {
		for _, by := range []string{recording.ByLine, recording.ByStack, recording.ByCategory, recording.BySize, recording.ByMetadata} {
			top, err := r.Top(at, by, 5)
			show(t, err, func() writer { return Top{top, -1} })
		}
		diff, err := recording.NewDiff(r, r, at, 0)
		show(t, err, func() writer { return Diff{diff, 1} })
		if _, err := r.Segments(at); err != nil {
			t.Log(err)
		}
	}
	limit, split, share, divisions, expandable := 64*bytesize.MiB, 20*bytesize.MiB, 0.5, int64(4), !tr.Settings.ExpandableSegments
	for _, what := range []recording.WhatIf{
		{},
		{Limit: &limit},
		{ExpandableSegments: &expandable},
		{MaxSplitSize: &split, Limit: &limit},
		{GCThreshold: &share, Limit: &limit},
		{Roundup: &divisions},
	} {
		replay, err := r.Replay(what, nil)
		show(t, err, func() writer { return ReplayText{replay} })
	}
	side := recording.CompareInput{File: "a", Trace: tr}
	show(t, nil, func() writer {
		return Compare{recording.NewCompare(side, side, trace.Compare(tr, tr), 0, 3), -1}
	})
	if tl, err := r.Timeline(timeline.Options{}); err != nil {
		t.Log(err)
	} else if err := draw.TimelineSVG(io.Discard, tl, draw.Style{}); err != nil {
		t.Error(err)
	}
}

// writer is an answer for people.
type writer interface {
	Write(w io.Writer, width int) error
}

// show writes an answer. Text from the file must not control a terminal.
func show(t *testing.T, err error, answer func() writer) {
	t.Helper()
	if err != nil {
		t.Log(err)
		return
	}
	var b strings.Builder
	if err := WriteText(&b, 80, answer().Write); err != nil {
		t.Fatal(err)
	}
	if at := strings.IndexFunc(b.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); at >= 0 {
		t.Errorf("%T: control character %q", answer(), b.String()[at:])
	}
}

// mutatedTrace makes a recording by running a program on the allocator, and
// changes parts of it. A byte of the program below 128 allocates a size, others
// free the allocation of that number. Three bytes are a change: what, where,
// and how.
func mutatedTrace(settings, program, changes []byte) *trace.Trace {
	requests := trace.New(0, trace.NewTables())
	freed := make(map[trace.ID]bool)
	var next trace.ID
	for _, b := range program {
		if b < 128 {
			size := int64(1) << (b % 32) * int64(b%7+1)
			requests.Events = append(requests.Events, trace.Event{Action: trace.Alloc, Size: size, ID: next, Time: int64(next)})
			next++
		} else if id := trace.ID(b - 128); id < next && !freed[id] {
			freed[id] = true
			for _, a := range []trace.Action{trace.FreeRequested, trace.FreeCompleted} {
				requests.Events = append(requests.Events, trace.Event{Action: a, ID: id})
			}
		}
	}
	opts := allocator.Options{}
	if len(settings) > 0 {
		opts.Settings.ExpandableSegments = settings[0]&1 != 0
		opts.Settings.MaxSplitSize = int64(settings[0]&2) * 20 << 20
	}
	if len(settings) > 1 {
		opts.Limit = int64(settings[1]) << 22
	}
	placed, _, err := allocator.Place(requests, opts)
	if err != nil {
		panic(err) // there is no limit that it could have exceeded
	}
	for ; len(changes) >= 3; changes = changes[3:] {
		mutate(placed, changes[0], int(changes[1]), changes[2])
	}
	placed.Link()
	placed.LinkMarks()
	return placed
}

// mutate changes one thing.
func mutate(t *trace.Trace, what byte, where int, how byte) {
	extreme := []int64{0, 1, 511, 512, 1 << 20, 2 << 20, 20 << 20, 1 << 40, 1<<62 - 1, 1<<63 - 1}[how%10]
	if len(t.Events) == 0 {
		return
	}
	e := &t.Events[where%len(t.Events)]
	switch what % 12 {
	case 0:
		e.Action = trace.Action(how%9) + 1
	case 1:
		e.Size = extreme
	case 2:
		e.Addr += uint64(extreme)
	case 3:
		t.Streams = append(t.Streams, uint64(len(t.Streams)))
		e.Stream = uint16(int(how) % len(t.Streams))
	case 4:
		e.Note = t.AddNote(trace.Note{Pool: trace.PoolID{0, uint64(how % 3)}, HasPool: true, DeviceFree: extreme})
	case 5:
		n := where % len(t.Events)
		t.Events = append(t.Events[:n:n], append([]trace.Event{*e}, t.Events[n:]...)...)
	case 6:
		t.Events = t.Events[:len(t.Events)-where%len(t.Events)]
	case 7:
		t.Marks = append(t.Marks, trace.Mark{Name: fmt.Sprint("Optimizer.step#", how%3), Time: int64(where), End: how%2 == 0})
	case 8:
		t.Settings.ExpandableSegments = how%2 == 0
		t.Settings.RoundupDivisions[where%16] = extreme
	case 9:
		t.Final = nil
	default:
		mutateFinal(t, where, how, extreme)
	}
}

// mutateFinal changes the final state of the recording.
func mutateFinal(t *trace.Trace, where int, how byte, extreme int64) {
	if len(t.Final) == 0 {
		return
	}
	s := &t.Final[where%len(t.Final)]
	switch how % 5 {
	case 0:
		s.Size = extreme
	case 1:
		s.Addr = uint64(extreme)
	case 2:
		s.Expandable = !s.Expandable
	case 3:
		s.Small, s.Pool = !s.Small, trace.PoolID{0, 1}
	default:
		if len(s.Blocks) > 0 {
			b := &s.Blocks[where%len(s.Blocks)]
			b.State, b.Size = trace.State(how%3), extreme
		}
	}
}
