package timeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memorymark/internal/trace"
)

// parse makes a trace of words: "before w 400", "alloc a 100", "free a",
// "request a", "complete a", "segment 2048", "release 2048", "oom 64",
// "begin name", "end name", one a line. Events are a millisecond apart.
func parse(t testing.TB, script string) *trace.Trace {
	t.Helper()
	tr := trace.New(0, trace.NewTables())
	addresses := make(map[string]uint64)
	sizes := make(map[string]int64)
	blocks := make(map[string]trace.Block)
	add := func(a trace.Action, name string, size int64) {
		now := int64(1_000_000 + 1000*len(tr.Events))
		tr.Events = append(tr.Events, trace.Event{Action: a, Addr: addresses[name], Size: size, Time: now})
	}
	for text := range strings.Lines(script) {
		var verb, name string
		var size int64
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		verb = words[0]
		if n, err := fmt.Sscan(words[len(words)-1], &size); n != 1 || err != nil {
			size = 0
		}
		if len(words) > 1 {
			name = words[1]
		}
		switch verb {
		case "before", "alloc":
			addresses[name] = uint64(4096 * (len(addresses) + 1))
			sizes[name] = size
			blocks[name] = trace.Block{Addr: addresses[name], Size: size, Requested: size, State: trace.Allocated}
			if verb == "alloc" {
				add(trace.Alloc, name, size)
			}
		case "free", "request", "complete":
			if verb != "complete" {
				add(trace.FreeRequested, name, sizes[name])
			}
			if verb != "request" {
				add(trace.FreeCompleted, name, sizes[name])
				delete(blocks, name)
			}
		case "segment":
			add(trace.SegmentAlloc, "", size)
		case "release":
			add(trace.SegmentFree, "", size)
		case "oom":
			add(trace.OutOfMemory, "", size)
			tr.Events[len(tr.Events)-1].Note = tr.AddNote(trace.Note{DeviceFree: 7})
		case "begin", "end":
			tr.Marks = append(tr.Marks, trace.Mark{Name: name, Event: len(tr.Events), End: verb == "end"})
		default:
			t.Fatalf("unknown word %q", verb)
		}
	}
	for name, b := range blocks {
		if b.Size > 0 {
			tr.Final = append(tr.Final, trace.Segment{Addr: addresses[name], Size: b.Size, Blocks: []trace.Block{b}})
		}
	}
	tr.Link()
	return tr
}

func build(t testing.TB, tr *trace.Trace, opts Options) *Timeline {
	t.Helper()
	tl, err := Build(tr, nil, Levels{Reserved: Reserved(tr)}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// outline writes shapes and bands so that tests can be read: "2: 100 at 1@0
// 3@50 to 5" is allocation 2, 100 bytes, at offset 0 from column 1, at 50 from
// column 3, until column 5.
func outline(tl *Timeline) []string {
	var out []string
	for _, s := range tl.Shapes {
		text := fmt.Sprintf("%d: %d at", s.ID, s.Size)
		for _, step := range s.Steps {
			text += fmt.Sprintf(" %d@%d", step.Column, step.Offset)
		}
		out = append(out, fmt.Sprintf("%s to %d", text, s.End))
	}
	for _, b := range tl.Bands {
		out = append(out, fmt.Sprintf("%s %d×: %d", tl.Groups[b.Group].Label, b.Count, b.Heights))
	}
	return out
}

func TestShapes(t *testing.T) {
	tests := []struct {
		name, script string
		opts         Options
		want         []string
	}{
		{"nothing", "", Options{}, nil},
		{"only before", "before w 400\nbefore v 100", Options{}, []string{"-1: 500 at 0@0 to 1"}},
		{"one event", "alloc a 8", Options{}, []string{"0: 8 at 1@0 to 2"}},
		{"falls when what is below is freed", "alloc a 10\nalloc b 20\nfree a", Options{}, []string{
			"0: 10 at 1@0 to 4", "1: 20 at 2@10 4@0 to 5",
		}},
		{"a requested free still holds", "alloc a 8\nrequest a\nalloc b 8\ncomplete a", Options{}, []string{
			"0: 8 at 1@0 to 4", "1: 8 at 3@8 4@0 to 5",
		}},
		{"before and freed", "before w 400\nbefore v 100\nfree v", Options{}, []string{
			"-1: 400 at 0@0 to 3", "1: 100 at 0@400 to 2",
		}},
		{"the smaller ones are a band", "alloc a 10\nalloc b 200\nalloc c 30", Options{Detail: 1}, []string{
			"1: 200 at 2@0 to 4", "no stack recorded 2×: [0 10 10 40]",
		}},
		{"a window", "alloc a 10\nalloc b 20\nalloc c 30\nfree a", Options{From: 2, To: 4}, []string{
			"0: 10 at 0@0 to 3", "1: 20 at 0@10 to 3", "2: 30 at 1@30 to 3",
		}},
		// The columns are the moments -1 and 0, and 1 to 3.
		{"a column shows its highest moment", "alloc a 10\ncomplete a\nalloc b 7\ncomplete b", Options{Columns: 2}, []string{
			"0: 10 at 0@0 to 1", "1: 7 at 1@0 to 2",
		}},
		{"too many steps are a band", "alloc a 1\nalloc b 2\nalloc c 3\nfree a\nfree b", Options{Steps: 1}, []string{
			"2: 3 at 3@0 to 8", "no stack recorded 2×: [0 1 3 3 3 2 2 0]",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr := parse(t, test.script)
			tl := build(t, tr, test.opts)
			if diff := cmp.Diff(test.want, outline(tl)); diff != "" {
				t.Errorf("shapes (-want +got):\n%s", diff)
			}
			checkInvariants(t, tr, tl)
		})
	}
}

func TestCategoriesAreLayers(t *testing.T) {
	tr := parse(t, "before w 400\nbefore m 40\nalloc act 10\nalloc grad 20\nalloc tmp 5\nfree tmp")
	lifetimes := tr.Lifetimes()
	for i, c := range []trace.Category{trace.Parameter, trace.OptimizerState, trace.Activation, trace.Gradient, trace.Temporary} {
		lifetimes[i].For = c
	}
	tl, err := Build(tr, lifetimes, Levels{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-1: 400 at 0@0 to 6", "-1: 40 at 0@400 to 6", // parameters, then state
		"3: 20 at 2@440 to 6",       // gradients below the older activation
		"2: 10 at 1@440 2@460 to 6", //
		"4: 5 at 3@470 to 5",
	}
	if diff := cmp.Diff(want, outline(tl)); diff != "" {
		t.Errorf("shapes (-want +got):\n%s", diff)
	}
	var labels []string
	for _, g := range tl.Groups {
		labels = append(labels, fmt.Sprintf("%s %d", g.Label, g.AtPeak))
	}
	wantLabels := []string{"parameter 400", "optimizer state 40", "gradient 20", "activation 10", "temporary 5"}
	if diff := cmp.Diff(wantLabels, labels); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// The order does not depend on how many shapes are drawn: small allocations
// stay in their layer.
func TestSmallParametersStayAtTheBottom(t *testing.T) {
	tr := parse(t, "alloc w 400\nalloc v 40\nalloc act 100\nalloc grad 20\nfree act")
	lifetimes := tr.Lifetimes()
	for i, c := range []trace.Category{trace.Parameter, trace.Parameter, trace.Activation, trace.Gradient} {
		lifetimes[i].For = c
	}
	for _, byStack := range []bool{false, true} {
		tl, err := Build(tr, lifetimes, Levels{}, Options{Detail: 2, ByStack: byStack})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := outline(tl)[:2], []string{"0: 400 at 1@0 to 7", "2: 100 at 3@440 4@460 to 6"}; !cmp.Equal(got, want) {
			t.Errorf("shapes %q, want %q", got, want)
		}
		if got, want := tl.Bands[0].Bottoms, []int64{0, 400, 400, 400, 400, 400, 400}; !cmp.Equal(got, want) {
			t.Errorf("the small parameter stands at %d, want %d", got, want)
		}
	}
}

func TestLargestFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		pieces := make([]piece, rng.IntN(60))
		for i := range pieces {
			pieces[i].Lifetime = &trace.Lifetime{ID: trace.ID(i), Size: rng.Int64N(20)}
		}
		want := slices.Clone(pieces)
		slices.SortStableFunc(want, func(a, b piece) int { return int(b.Size - a.Size) })
		n := rng.IntN(70)
		largestFirst(pieces, n)
		for i := range min(n, len(pieces)) {
			if pieces[i].ID != want[i].ID {
				t.Fatalf("of %d the %d largest: piece %d is %d, want %d", len(pieces), n, i, pieces[i].ID, want[i].ID)
			}
		}
	}
}

// Stacks beyond the first few share a colour, and a label has the same colour
// whatever else is in the picture.
func TestGroupsOfStacks(t *testing.T) {
	tr := parse(t, "alloc a 40\nalloc b 30\nalloc c 20\nalloc d 10")
	for i := range tr.Events {
		frame := tr.Stacks.AddFrame(trace.Frame{File: "train.py", Name: "f", Line: i})
		tr.Events[i].Stack = tr.Stacks.Add([]trace.FrameID{frame})
	}
	tl := build(t, tr, Options{Groups: 2})
	var got []string
	for _, g := range tl.Groups {
		got = append(got, fmt.Sprintf("%s %d", g.Label, g.AtPeak))
	}
	want := []string{"train.py:0 f 40", "train.py:1 f 30", "2 other stacks 30"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if tl.Groups[2].Color != ColorOther || tl.Groups[0].Color == tl.Groups[1].Color {
		t.Errorf("colours: %+v", tl.Groups)
	}
	alone := build(t, parse(t, "alloc a 40"), Options{Label: func(trace.StackID) string { return "train.py:0 f" }})
	if alone.Groups[0].Color != ColorNoStack {
		t.Errorf("a stack that was not recorded has colour %d", alone.Groups[0].Color)
	}
}

func TestLevels(t *testing.T) {
	tr := parse(t, "before w 5\nsegment 20\nalloc a 8\nsegment 30\nfree a\nrelease 20")
	active, err := activeOf(tr, tr.Lifetimes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{5, 5, 13, 13, 13, 5, 5}, active); diff != "" {
		t.Errorf("active (-want +got):\n%s", diff)
	}
	tr.Final[0].Size = 35
	if diff := cmp.Diff([]int64{25, 25, 55, 55, 55, 35}, Reserved(tr)); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
	tr.Final[0].Size = 2
	if got := Reserved(tr); got != nil {
		t.Errorf("reserved = %d although more was taken than there is", got)
	}
	tr.Final = nil
	if got := Reserved(tr); got != nil {
		t.Errorf("reserved = %d without segments", got)
	}
}

func TestSpansAndFailures(t *testing.T) {
	tr := parse(t, `
		begin step
		alloc a 8
		begin Optimizer.step#AdamW.step
		alloc b 8
		oom 64
		end Optimizer.step#AdamW.step
		begin empty
		end empty
		end step
		end unknown
		begin open
		alloc c 8`)
	tl := build(t, tr, Options{})
	want := []Span{
		{Name: "step", From: 0, To: 3, Peak: 16, PeakEvent: 1},
		{Name: "Optimizer.step#AdamW.step", From: 1, To: 3, Depth: 1, Peak: 16, PeakEvent: 1},
		{Name: "open", From: 3, To: 4, Peak: 24, PeakEvent: 3},
	}
	if diff := cmp.Diff(want, tl.Spans); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if got := want[1].Label(); got != "AdamW.step" {
		t.Errorf("label = %q", got)
	}
	if diff := cmp.Diff([]FailedAllocation{{Event: 2, Size: 64, Free: 7}}, tl.Failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestTimeTicks(t *testing.T) {
	tr := parse(t, "alloc a 1\nalloc b 1\nalloc c 1\nalloc d 1\nalloc e 1\nalloc f 1")
	for i, ms := range []int64{0, 1, 2, 500, 3000, 3001} {
		tr.Events[i].Time = 1_000_000 + 1000*ms
	}
	tl := build(t, tr, Options{})
	// The pause before e runs past 1 and 2 seconds; 3 is the truth.
	want := []Tick{{0, 0}, {4, 500_000}, {5, 3_000_000}}
	if diff := cmp.Diff(want, tl.TimeTicks(1)); diff != "" {
		t.Errorf("ticks (-want +got):\n%s", diff)
	}
	for i := range tr.Events {
		tr.Events[i].Time = 0
	}
	if ticks := build(t, tr, Options{}).TimeTicks(1); ticks != nil {
		t.Errorf("ticks without times: %v", ticks)
	}
}

func TestHostileTraces(t *testing.T) {
	huge := parse(t, fmt.Sprintf("alloc a %d\nalloc b %d", math.MaxInt64, math.MaxInt64))
	before := parse(t, fmt.Sprintf("before a %d\nbefore b %d", math.MaxInt64, math.MaxInt64))
	negative := parse(t, "alloc a 1")
	negative.Events[0].Size = -1
	for name, tr := range map[string]*trace.Trace{"huge": huge, "huge before": before, "negative": negative} {
		if _, err := Build(tr, nil, Levels{}, Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	fine := parse(t, "alloc a 1\nalloc b 2")
	for name, opts := range map[string]Options{"negative": {From: -1}, "turned": {From: 2, To: 1}, "beyond": {To: 3}} {
		if _, err := Build(fine, nil, Levels{}, opts); err == nil {
			t.Errorf("window %s: no error", name)
		}
	}
	if _, err := Build(fine, nil, Levels{Reserved: []int64{1}}, Options{}); err == nil {
		t.Error("levels of another trace: no error")
	}
	one := parse(t, fmt.Sprintf("alloc a %d\nfree a", math.MaxInt64))
	checkInvariants(t, one, build(t, one, Options{}))
	lost := parse(t, "alloc a 8\nalloc b 8")
	lost.Events[1].Addr = lost.Events[0].Addr
	lost.Final = nil
	lost.Link()
	if lost.Lost == 0 {
		t.Fatal("nothing was lost")
	}
	checkInvariants(t, lost, build(t, lost, Options{}))
}
