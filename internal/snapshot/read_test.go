package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"memorymark/internal/testmachine"
	"memorymark/internal/trace"
)

const truthDir = "../../testdata/truth"

// readFile reads a snapshot that must be good.
func readFile(t testing.TB, path string) *Snapshot {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Read(f, Limits{})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

var (
	recordedMu sync.Mutex
	recordedBy = make(map[string]*Snapshot)
)

// recorded is readFile for several tests that share the result: unpacking xz
// takes most of their time.
func recorded(t testing.TB, path string) *Snapshot {
	t.Helper()
	recordedMu.Lock()
	s := recordedBy[path]
	recordedMu.Unlock()
	if s == nil {
		s = readFile(t, path)
		recordedMu.Lock()
		recordedBy[path] = s
		recordedMu.Unlock()
	}
	return s
}

// files returns the files that match a pattern, at least one.
func files(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return paths
}

// facts is what testdata/truth.py wrote about a recorded file.
type facts struct {
	Devices     int    `json:"devices"`
	Events      int    `json:"events"`
	EventSize   int64  `json:"event_size"`
	EventAddr   uint64 `json:"event_addr"`
	EventTime   uint64 `json:"event_time"`
	EventFrames int    `json:"event_frames"`
	EventLines  int    `json:"event_lines"`
	Segments    int    `json:"segments"`
	SegmentSize int64  `json:"segment_size"`
	Blocks      int    `json:"blocks"`
	Requested   int64  `json:"requested"`
	BlockFrames int    `json:"block_frames"`
	Marks       int    `json:"marks"`
	SHA256      string `json:"sha256"`
}

// recordedFrames are all frames of a stack, those of MemoryMark's own among them.
func recordedFrames(s *trace.Stacks, id trace.StackID) []trace.Frame {
	var out []trace.Frame
	for _, f := range s.IDs(id) {
		out = append(out, s.Frame(f))
	}
	return out
}

func factsOf(s *Snapshot) facts {
	f := facts{Devices: len(s.Devices)}
	for _, t := range s.Devices {
		f.Events += len(t.Events)
		f.Marks += len(t.Marks)
		f.Segments += len(t.Final)
		for _, e := range t.Events {
			f.EventSize += e.Size
			f.EventAddr += e.Addr
			f.EventTime += uint64(e.Time)
			for _, frame := range recordedFrames(t.Stacks, e.Stack) {
				f.EventFrames++
				f.EventLines += frame.Line
			}
		}
		for _, g := range t.Final {
			f.SegmentSize += g.Size
			f.Blocks += len(g.Blocks)
			for _, b := range g.Blocks {
				f.Requested += b.Requested
				f.BlockFrames += len(t.Stacks.IDs(b.Stack))
			}
		}
	}
	sum := sha256.Sum256([]byte(describe(s)))
	f.SHA256 = hex.EncodeToString(sum[:])
	return f
}

// TestReadTruth compares every field of every recorded file with what Python
// read.
func TestReadTruth(t *testing.T) {
	golden := testmachine.ReadFile(t, "testdata/truth.json")
	var want map[string]facts
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	if n := len(files(t, truthDir+"/*/*.pickle.xz")); n != len(want) {
		t.Errorf("%d files, truth.json has %d: run testdata/truth.py", n, len(want))
	}
	for name, want := range want {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := recorded(t, filepath.Join(truthDir, name))
			if diff := cmp.Diff(want, factsOf(s)); diff != "" {
				t.Errorf("(-Python +Go)\n%s", diff)
			}
			if s.Protocol != 4 || s.Encoding != "xz" || s.Unknown != nil {
				t.Errorf("protocol %d, encoding %s, unknown %v", s.Protocol, s.Encoding, s.Unknown)
			}
			for i, d := range s.Devices {
				if d.Device != i || d.Tables != s.Devices[0].Tables {
					t.Errorf("device %d: named %d, or with tables of its own", i, d.Device)
				}
				if err := d.CheckValid(); err != nil {
					t.Errorf("device %d: %v", i, err)
				}
			}
		})
	}
}

// TestReadShapes reads small snapshots of all versions, each pickled in all
// ways, and compares with what Python read.
func TestReadShapes(t *testing.T) {
	protocols := map[string]int{
		"p2": 2, "p3": 3, "p4": 4, "p5": 5, "optimized": 4, "fast": 4,
		"cpp": 2, "one_by_one": 2, "marked": 2,
	}
	unknown := map[string][]string{
		"torch214": {"allocator_settings.allocator", "event.weather", "segment.colour", "snapshot.version"},
	}
	for _, path := range files(t, "testdata/shapes/*.pickle*") {
		name, packed := strings.CutSuffix(filepath.Base(path), ".gz")
		shape, way, _ := strings.Cut(strings.TrimSuffix(name, ".pickle"), ".")
		t.Run(name, func(t *testing.T) {
			want := testmachine.ReadFile(t, "testdata/shapes/"+shape+".txt")
			s := readFile(t, path)
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(describe(s), "\n")); diff != "" {
				t.Errorf("(-Python +Go)\n%s", diff)
			}
			if diff := cmp.Diff(unknown[shape], s.Unknown); diff != "" {
				t.Errorf("unknown keys (-want +got)\n%s", diff)
			}
			if s.Protocol != protocols[way] {
				t.Errorf("protocol %d, want %d", s.Protocol, protocols[way])
			}
			if want := map[bool]string{true: "gzip", false: "plain"}[packed]; s.Encoding != want {
				t.Errorf("encoding %s, want %s", s.Encoding, want)
			}
		})
	}
}

// TestReadWindows reads files through windows that cut dicts, lists and strings
// anywhere: a run that is cut leaves no trace.
func TestReadWindows(t *testing.T) {
	long := []byte("\x80\x04}\x94(" + str("device_traces") + "\x94]\x94]\x94}\x94(" + str("action") + "\x94" + str("alloc") + "\x94" +
		str("compile_context") + "\x94X\x00\x00\x01\x00" + strings.Repeat("x", 1<<16) + "\x94uaau.")
	cases := map[string][]byte{"a long string": long}
	for _, path := range files(t, "testdata/shapes/*.pickle") {
		data := testmachine.ReadFile(t, path)
		cases[filepath.Base(path)] = data
	}
	for name, data := range cases {
		whole, err := Read(bytes.NewReader(data), Limits{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := describe(whole)
		for _, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(data)), iotest.HalfReader(bytes.NewReader(data)), iotest.DataErrReader(bytes.NewReader(data))} {
			s, err := Read(r, Limits{})
			if err != nil {
				t.Fatalf("%s: %T: %v", name, r, err)
			}
			if got := describe(s); got != want {
				t.Errorf("%s: %T reads something else:\n%s", name, r, got)
			}
		}
	}
}

// TestReadShares checks that what many events name is stored once.
func TestReadShares(t *testing.T) {
	for _, way := range []string{"p4", "fast", "one_by_one"} {
		s := readFile(t, "testdata/shapes/torch211."+way+".pickle")
		d := s.Devices[0]
		if d.Events[1].Stack != d.Events[2].Stack {
			t.Errorf("%s: equal stacks are stored twice", way)
		}
		// A dict filled one item at a time leaves notes of its earlier states.
		if got := len(d.Notes); got > 7 && way != "one_by_one" {
			t.Errorf("%s: %d notes for 6 different ones and the empty one", way, got)
		}
	}
}

func TestReadEncodings(t *testing.T) {
	plain := testmachine.ReadFile(t, "testdata/shapes/torch211.p4.pickle")
	for _, encoding := range []string{"plain", "gzip", "zstd", "xz"} {
		t.Run(encoding, func(t *testing.T) {
			packed := pack(t, encoding, plain)
			s, err := Read(bytes.NewReader(packed), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if s.Encoding != encoding {
				t.Errorf("encoding %s", s.Encoding)
			}
			if _, err := Read(bytes.NewReader(packed[:len(packed)-3]), Limits{}); err == nil {
				t.Error("a file cut short was accepted")
			}
			_, err = Read(bytes.NewReader(packed), Limits{Bytes: int64(len(plain)) - 1})
			if err == nil || !strings.Contains(err.Error(), "larger than the limit") {
				t.Errorf("a file beyond the limit: %v", err)
			}
			if _, err := Read(bytes.NewReader(packed), Limits{Bytes: int64(len(plain))}); err != nil {
				t.Errorf("a file at the limit: %v", err)
			}
		})
	}
}

func pack(t testing.TB, encoding string, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	var err error
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		w, err = zstd.NewWriter(&out)
	case "xz":
		w, err = xz.NewWriter(&out)
	default:
		return plain
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
