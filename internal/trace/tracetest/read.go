package tracetest

import (
	"os"
	"testing"

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
