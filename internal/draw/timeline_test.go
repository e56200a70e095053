package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memorymark/internal/testmachine"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// hostile is a stack frame that tries to break a picture or a page.
const hostile = `</script><script>alert("x")</script><img src=x onerror=alert(1)>&'` + "\x00\u2028"

// smallTrace is a program with everything that a picture can show.
func smallTrace() *trace.Trace {
	t := trace.New(0, trace.NewTables())
	frame := t.Stacks.AddFrame(trace.Frame{File: hostile, Name: "forward", Line: 7})
	stack := t.Stacks.Add([]trace.FrameID{frame})
	const mib = 1 << 20
	add := func(a trace.Action, addr uint64, size int64, what trace.Category) {
		now := int64(1_794_703_114_000_000 + 250*len(t.Events))
		t.Events = append(t.Events, trace.Event{Action: a, Addr: addr, Size: size, Time: now, Stack: stack, For: what})
	}
	add(trace.SegmentAlloc, 0x1000000, 20*mib, 0)
	add(trace.Alloc, 0x1000000, 6*mib, trace.Activation)
	add(trace.Alloc, 0x1600000, 3*mib, trace.Unknown)
	add(trace.Alloc, 0x1a00000, 1000, trace.Temporary)
	add(trace.FreeRequested, 0x1000000, 6*mib, 0)
	add(trace.FreeCompleted, 0x1000000, 6*mib, 0)
	add(trace.OutOfMemory, 0, 64*mib, 0)
	t.Marks = []trace.Mark{{Name: "Optimizer.step#AdamW.step", Event: 4}, {Name: "Optimizer.step#AdamW.step", Event: 7, End: true}}
	t.Final = []trace.Segment{
		{Addr: 0x800000, Size: 2 * mib, Blocks: []trace.Block{{Addr: 0x800000, Size: 2 * mib, Requested: 2 * mib, State: trace.Allocated}}},
		{Addr: 0x1000000, Size: 20 * mib, Blocks: []trace.Block{
			{Addr: 0x1600000, Size: 3 * mib, State: trace.Allocated}, {Addr: 0x1a00000, Size: 1024, State: trace.Allocated},
		}},
	}
	t.Link()
	return t
}

func smallTimeline(t *testing.T) *timeline.Timeline {
	t.Helper()
	tr := smallTrace()
	tl, err := timeline.Build(tr, nil, timeline.Levels{Reserved: timeline.Reserved(tr)}, timeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestTimelineSVG(t *testing.T) {
	for name, style := range map[string]Style{
		"timeline_dark.svg":  {Title: "a small trace", Width: 900, Height: 500},
		"timeline_light.svg": {Title: hostile, Width: 640, Height: 360, Light: true},
	} {
		var got bytes.Buffer
		if err := TimelineSVG(&got, smallTimeline(t), style); err != nil {
			t.Fatal(err)
		}
		checkXML(t, got.Bytes())
		golden := filepath.Join("testdata", name)
		if *update {
			testmachine.WriteFile(t, golden, got.Bytes())
		}
		want := testmachine.ReadFile(t, golden)
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got); -update accepts it:\n%s", name, diff)
		}
	}
}

// checkXML reads an SVG to its end and reports elements that no picture has.
func checkXML(t *testing.T, data []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			switch e.Name.Local {
			case "svg", "path", "text", "title":
			default:
				t.Errorf("element <%s>", e.Name.Local)
			}
		}
	}
}

func TestTimelinePNG(t *testing.T) {
	style := Style{Title: "a small trace", Width: 900, Height: 500}
	tl := smallTimeline(t)
	var buffer bytes.Buffer
	if err := TimelinePNG(&buffer, tl, style); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&buffer)
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size.X != 900 || size.Y != 500 {
		t.Errorf("size = %v", size)
	}
	p := newPlot(tl, style.withDefaults())
	at := func(column float64, bytes int64) string {
		r, g, b, _ := img.At(int(p.x(column)), int(p.y(bytes))).RGBA()
		return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
	}
	const mib = 1 << 20
	for what, check := range map[string]struct{ got, want string }{
		"nothing above":    {at(0.5, 13*mib), hex(dark.background)},
		"before recording": {at(0.5, 1*mib), hex(dark.of(timeline.ColorBefore))},
		"the activation":   {at(4.5, 8*mib), hex(shade(dark.of(timeline.Color(trace.Activation)), (1+2)%3-1))},
		"gone when freed":  {at(7.5, 8*mib), hex(dark.background)},
	} {
		if check.got != check.want {
			t.Errorf("%s: %s, want %s", what, check.got, check.want)
		}
	}
	if line := at(0.5, 22*mib); line < "#808080" {
		t.Errorf("the reserved line is %s", line)
	}
}

func TestTimelineHTML(t *testing.T) {
	var buffer bytes.Buffer
	if err := TimelineHTML(&buffer, smallTimeline(t), Style{Title: hostile}); err != nil {
		t.Fatal(err)
	}
	page := buffer.String()
	if found := regexp.MustCompile(`(https?:)?//[a-zA-Z]+\.[a-zA-Z]`).FindAllString(page, -1); found != nil {
		t.Errorf("the page names other hosts: %v", found)
	}
	if strings.Contains(page, "alert(1)>") || strings.Contains(page, `<script>alert`) {
		t.Error("a stack frame or the title got into the page as it is")
	}
	if got := strings.Count(page, "<script"); got != 2 {
		t.Errorf("%d script elements", got)
	}
	if !strings.Contains(page, `\u003c/script\u003e`) {
		t.Error("the frame is not in the data")
	}
}

// A picture of nothing, and of anything at the smallest size, is a picture.
func TestTimelineOfLittle(t *testing.T) {
	empty := trace.New(0, trace.NewTables())
	empty.Link()
	tl, err := timeline.Build(empty, nil, timeline.Levels{}, timeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, style := range []Style{{}, {Width: 1, Height: 1}} {
		for _, tl := range []*timeline.Timeline{tl, smallTimeline(t)} {
			var svg bytes.Buffer
			if err := TimelineSVG(&svg, tl, style); err != nil {
				t.Error(err)
			}
			checkXML(t, svg.Bytes())
			if strings.Contains(svg.String(), "NaN") || strings.Contains(svg.String(), "Inf") {
				t.Errorf("a coordinate is not a number:\n%s", svg.String())
			}
			if err := TimelinePNG(io.Discard, tl, style); err != nil {
				t.Error(err)
			}
			if err := TimelineHTML(io.Discard, tl, style); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	if got := shorten("modeling_gpt2.py:312", 10, 60); got != "…t2.py:312" {
		t.Errorf("shortened to %q", got)
	}
	ticks, write := byteTicks(3<<30, 8)
	var labels []string
	for _, tick := range ticks {
		labels = append(labels, write(tick))
	}
	want := []string{"0", "0.5 GiB", "1 GiB", "1.5 GiB", "2 GiB", "2.5 GiB", "3 GiB"}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("ticks (-want +got):\n%s", diff)
	}
}
