package tracetest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ulikunitz/xz"

	"memorymark/internal/snapshot"
	"memorymark/internal/trace"
)

// Read reads a snapshot.
func Read(tb testing.TB, path string) *snapshot.Snapshot {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	s, err := snapshot.Read(f, snapshot.Limits{})
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return s
}

// Trace reads a snapshot of one device.
func Trace(tb testing.TB, path string) *trace.Trace {
	tb.Helper()
	return Read(tb, path).Devices[0]
}

// Open opens a file until the test ends, and unpacks it if its name ends in .xz.
func Open(tb testing.TB, path string) io.Reader {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	if filepath.Ext(path) != ".xz" {
		return f
	}
	r, err := xz.NewReader(bufio.NewReader(f))
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return r
}

// Lines reads a file of JSON lines, which has at least one.
func Lines[T any](tb testing.TB, path string) []T {
	tb.Helper()
	var lines []T
	for d := json.NewDecoder(Open(tb, path)); d.More(); {
		var line T
		if err := d.Decode(&line); err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		tb.Fatalf("%s is empty", path)
	}
	return lines
}

// Requests makes a trace of requests: the size of an allocation, or minus the
// number, from 1, of the allocation that is freed.
func Requests(requests []int64) *trace.Trace {
	tr := trace.New(0, trace.NewTables())
	next := trace.ID(0)
	for _, r := range requests {
		if r > 0 {
			tr.Events = append(tr.Events, trace.Event{Action: trace.Alloc, Size: r, ID: next})
			next++
		} else {
			tr.Events = append(tr.Events, trace.Event{Action: trace.FreeCompleted, ID: trace.ID(-1 - r)})
		}
	}
	return tr
}
