package draw

import (
	"bytes"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"memorymark/internal/snapshot"
	"memorymark/internal/testmachine"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

// Pictures of what real programs did show their peak and stay small.
func TestTimelinesOfRecordings(t *testing.T) {
	files, err := filepath.Glob("../../testdata/truth/snapshots/*.pickle.xz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data := testmachine.ReadFile(t, file)
			s, err := snapshot.Read(bytes.NewReader(data), snapshot.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			tr := s.Devices[0]
			lifetimes := tr.Lifetimes()
			tr.Classify(lifetimes)
			tl, err := timeline.Build(tr, lifetimes, timeline.Levels{Reserved: timeline.Reserved(tr)}, timeline.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if peak := tr.Peak(); tl.Peak.Bytes != peak.Bytes || tl.Peak.Event != peak.Event {
				t.Errorf("peak = %+v, the trace's is %+v", tl.Peak, peak)
			}
			if tl.Reserved.Max == nil {
				t.Error("reserved memory is not known")
			}
			var svg bytes.Buffer
			if err := TimelineSVG(&svg, tl, Style{Title: filepath.Base(file)}); err != nil {
				t.Fatal(err)
			}
			checkXML(t, svg.Bytes())
			if svg.Len() > 1<<20 {
				t.Errorf("the SVG has %d bytes", svg.Len())
			}
			if err := TimelinePNG(io.Discard, tl, Style{Width: 800, Height: 450}); err != nil {
				t.Error(err)
			}
		})
	}
}

// churn is a trace without order, the worst to draw: frees are anywhere in the
// stack.
func churn(events int) *trace.Trace {
	t := trace.New(0, trace.NewTables())
	rng := rand.New(rand.NewPCG(1, 2))
	var live []trace.Event
	var stacks []trace.StackID
	for i := range 30 {
		f := t.Stacks.AddFrame(trace.Frame{File: "transformers/models/gpt2/modeling_gpt2.py", Name: "forward", Line: i})
		stacks = append(stacks, t.Stacks.Add([]trace.FrameID{f}))
	}
	for i := range events {
		now := int64(1_794_703_114_000_000 + 10*i)
		if len(live) < 1000 || rng.IntN(3) == 0 {
			e := trace.Event{Action: trace.Alloc, Addr: uint64(i), Size: 1 << (10 + rng.IntN(18)), Time: now, Stack: stacks[rng.IntN(30)]}
			live = append(live, e)
			t.Events = append(t.Events, e)
			continue
		}
		at := rng.IntN(len(live))
		e := live[at]
		live[at] = live[len(live)-1]
		live = live[:len(live)-1]
		e.Time, e.Action = now, trace.FreeCompleted
		t.Events = append(t.Events, e)
	}
	t.Link()
	return t
}

func TestWorstTimelineIsSmall(t *testing.T) {
	tl, err := timeline.Build(churn(100_000), nil, timeline.Levels{}, timeline.Options{Groups: timeline.StackColors})
	if err != nil {
		t.Fatal(err)
	}
	var svg bytes.Buffer
	if err := TimelineSVG(&svg, tl, Style{}); err != nil {
		t.Fatal(err)
	}
	if svg.Len() > 1<<20 {
		t.Errorf("the SVG has %d bytes", svg.Len())
	}
}

func BenchmarkTimelineOfMillionEvents(b *testing.B) {
	tr := churn(1_000_000)
	for name, draw := range map[string]func(io.Writer, *timeline.Timeline, Style) error{
		"svg": TimelineSVG, "png": TimelinePNG, "html": TimelineHTML,
	} {
		b.Run(name, func(b *testing.B) {
			opts := timeline.Options{}
			if name == "html" {
				opts = timeline.Zoomable
			}
			for b.Loop() {
				tl, err := timeline.Build(tr, nil, timeline.Levels{}, opts)
				if err != nil {
					b.Fatal(err)
				}
				var out bytes.Buffer
				if err := draw(&out, tl, Style{}); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(out.Len()), "bytes")
			}
		})
	}
}
