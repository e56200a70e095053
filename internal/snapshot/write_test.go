package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"memorymark/internal/testmachine"
	"memorymark/internal/trace"
)

// diffTraces compares traces with their stacks and notes spelled out, since a
// table may hold more than is used.
func diffTraces(a, b *Snapshot) string {
	var x, y []spelled
	for _, t := range a.Devices {
		x = append(x, spell(t))
	}
	for _, t := range b.Devices {
		y = append(y, spell(t))
	}
	if reflect.DeepEqual(x, y) { // much faster than cmp on 100,000 events
		return ""
	}
	return cmp.Diff(x, y, cmpopts.EquateNaNs())
}

// spelled is a trace without tables.
type spelled struct {
	Device   int
	Streams  []uint64
	Initial  []spelledBlock
	Events   []spelledEvent
	Final    []spelledSegment
	NoFinal  bool
	Marks    []trace.Mark
	Settings trace.Settings
	Lost     int
}

type spelledEvent struct {
	trace.Event
	Context context
}

type spelledBlock struct {
	trace.Block
	Context context
}

type spelledSegment struct {
	trace.Segment
	Context context
	Blocks  []spelledBlock
}

type context struct {
	Frames []trace.Frame
	Note   trace.Note
}

func spell(t *trace.Trace) spelled {
	of := func(stack *trace.StackID, note *trace.NoteID) context {
		c := context{recordedFrames(t.Stacks, *stack), t.Notes[*note]}
		*stack, *note = 0, 0
		return c
	}
	blocks := func(blocks []trace.Block) (out []spelledBlock) {
		for _, b := range blocks {
			c := of(&b.Stack, &b.Note)
			out = append(out, spelledBlock{b, c})
		}
		return out
	}
	s := spelled{
		Device: t.Device, Streams: t.Streams, Initial: blocks(t.Initial), NoFinal: t.Final == nil,
		Marks: t.Marks, Settings: t.Settings, Lost: t.Lost,
	}
	for _, e := range t.Events {
		c := of(&e.Stack, &e.Note)
		s.Events = append(s.Events, spelledEvent{e, c})
	}
	for _, g := range t.Final {
		c := of(&g.Stack, &g.Note)
		b := blocks(g.Blocks)
		g.Blocks = nil
		s.Final = append(s.Final, spelledSegment{g, c, b})
	}
	return s
}

// rewrite writes a snapshot and reads it back.
func rewrite(s *Snapshot) (again *Snapshot, pickled []byte, err error) {
	var out bytes.Buffer
	if err := Write(&out, s); err != nil {
		return nil, nil, err
	}
	again, err = Read(bytes.NewReader(out.Bytes()), Limits{})
	return again, out.Bytes(), err
}

// TestRoundTrip reads each file, writes it, and reads it again.
func TestRoundTrip(t *testing.T) {
	paths := append(files(t, truthDir+"/*/*.pickle.xz"), files(t, "testdata/shapes/*.pickle*")...)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			s := recorded(t, path)
			again, _, err := rewrite(s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffTraces(s, again); diff != "" {
				t.Errorf("(-first +second)\n%.4000s", diff)
			}
			if len(again.Unknown) > 0 || again.Protocol != 4 || again.Encoding != "plain" {
				t.Errorf("written: protocol %d, %s, unknown %v", again.Protocol, again.Encoding, again.Unknown)
			}
		})
	}
}

// TestPythonReadsEqual has Python compare recorded files with what Read and
// Write made of them.
func TestPythonReadsEqual(t *testing.T) {
	python := findPython(t)
	dir := t.TempDir()
	paths := append(files(t, truthDir+"/*/*.pickle.xz"),
		files(t, "testdata/shapes/torch211.*.pickle")...)
	paths = append(paths, files(t, "testdata/shapes/nothing.p4.pickle")...)
	var pairs strings.Builder
	for i, path := range paths {
		var out bytes.Buffer
		if err := Write(&out, recorded(t, path)); err != nil {
			t.Fatal(err)
		}
		ours := filepath.Join(dir, fmt.Sprintf("%d.pickle", i))
		testmachine.WriteFile(t, ours, out.Bytes())
		fmt.Fprintf(&pairs, "%s\t%s\n", path, ours)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/equal.py")
	cmd.Stdin = strings.NewReader(pairs.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != len(paths) {
		t.Fatalf("%d answers for %d files", len(answers), len(paths))
	}
	for i, answer := range answers {
		if answer != "equal" {
			t.Errorf("%s: %s", paths[i], answer)
		}
	}
}

// findPython returns python3, or skips the test and says what is not tested.
func findPython(t testing.TB) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT TESTED: python3 was not found, so nothing was compared with Python's pickle")
	}
	return python
}

func TestWriteErrors(t *testing.T) {
	s := &Snapshot{Devices: []*trace.Trace{trace.New(0, trace.NewTables()), trace.New(1, trace.NewTables())}}
	if err := Write(&bytes.Buffer{}, s); err == nil {
		t.Error("devices with tables of their own were written")
	}
	full := errors.New("disk full")
	err := Write(writerFunc(func([]byte) (int, error) { return 0, full }), &Snapshot{})
	if !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
