package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"memorymark/internal/trace"
)

// describe returns the text that testdata/describe.py makes of the same file.
func describe(s *Snapshot) string {
	var b strings.Builder
	for _, t := range s.Devices {
		fmt.Fprintf(&b, "device %d\n", t.Device)
		for i := range t.Events {
			e := &t.Events[i]
			fmt.Fprintf(&b, "event %s addr=%#x size=%d stream=%d time=%d frames=%s%s\n", e.Action, e.Addr, e.Size,
				t.Streams[e.Stream], e.Time, framesText(t.Tables, e.Stack, e.Note), noteText(&t.Notes[e.Note]))
		}
		if t.Final == nil {
			b.WriteString("no segments\n")
		}
		for i := range t.Final {
			describeSegment(&b, t, &t.Final[i])
		}
		for _, m := range t.Marks {
			stage := "START"
			if m.End {
				stage = "END"
			}
			fmt.Fprintf(&b, "mark %s \"%s\" %d\n", stage, m.Name, m.Time)
		}
		describeSettings(&b, &t.Settings)
	}
	return b.String()
}

func describeSegment(b *strings.Builder, t *trace.Trace, s *trace.Segment) {
	kind := "large"
	if s.Small {
		kind = "small"
	}
	fmt.Fprintf(b, "segment addr=%#x size=%d stream=%d %s pool=%d,%d expandable=%t frames=%s%s\n", s.Addr, s.Size,
		t.Streams[s.Stream], kind, s.Pool[0], s.Pool[1], s.Expandable,
		framesText(t.Tables, s.Stack, s.Note), noteText(&t.Notes[s.Note]))
	for i := range s.Blocks {
		k := &s.Blocks[i]
		fmt.Fprintf(b, "block addr=%#x size=%d requested=%d %s frames=%s%s\n", k.Addr, k.Size, k.Requested, k.State,
			framesText(t.Tables, k.Stack, k.Note), noteText(&t.Notes[k.Note]))
	}
}

func framesText(tables *trace.Tables, stack trace.StackID, note trace.NoteID) string {
	if tables.Notes[note].NoFrames {
		return "none"
	}
	var lines []string
	for _, f := range recordedFrames(tables.Stacks, stack) {
		line := fmt.Sprintf("%s:%d:%s", f.File, f.Line, f.Name)
		if fx := f.FX; fx != nil {
			line += "{" + strings.Join([]string{fx.Op, fx.Name, fx.Target, fx.Trace}, ",") + "}"
		}
		lines = append(lines, line)
	}
	return "[" + strings.Join(lines, "|") + "]"
}

func noteText(n *trace.Note) (out string) {
	if n.DeviceFree != 0 {
		out += fmt.Sprintf(" device_free=%d", n.DeviceFree)
	}
	if n.CompileContext != "" {
		out += fmt.Sprintf(" compile=\"%s\"", n.CompileContext)
	}
	if n.UserMetadata != "" {
		out += fmt.Sprintf(" user=\"%s\"", n.UserMetadata)
	}
	if n.HasPool {
		out += fmt.Sprintf(" pool=%d,%d", n.Pool[0], n.Pool[1])
	}
	if len(n.ForwardFrames) > 0 {
		out += " forward=[" + strings.Join(n.ForwardFrames, "|") + "]"
	}
	return out
}

func describeSettings(b *strings.Builder, s *trace.Settings) {
	roundup := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.RoundupDivisions), " ", ","), "[]")
	fmt.Fprintf(b, "settings \"%s\" max_split_size=%d gc=%g expandable=%t roundup=%s\n",
		s.Raw, s.MaxSplitSize, s.GCThreshold, s.ExpandableSegments, roundup)
	for _, name := range slices.Sorted(maps.Keys(s.Other)) {
		fmt.Fprintf(b, "setting %s=%d\n", name, s.Other[name])
	}
}
