package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"memorymark/internal/analysis"
	"memorymark/internal/measure"
	"memorymark/internal/snapshot"
	"memorymark/internal/trace"
)

// How much a recording may hold. studyEntries are some hundred megabytes,
// thirty steps of the largest model that is studied; sentEntries some tens of
// megabytes, for one that goes over a network.
const (
	studyEntries = 2_000_000
	sentEntries  = 200_000
)

// scratchRecord is a recording to a file that is gone once remove was called.
func scratchRecord(scope, name string, entries int) (r *measure.Record, remove func(), err error) {
	folder, err := os.MkdirTemp("", "memorymark-")
	if err != nil {
		return nil, nil, err
	}
	r = &measure.Record{Path: filepath.Join(folder, name), Scope: scope, MaxEntries: entries}
	return r, func() { _ = os.RemoveAll(folder) }, nil
}

// processRecord is a recording of a whole process: to a path, or to a file that is
// gone once remove was called if the path is empty.
func processRecord(path string) (r *measure.Record, remove func(), err error) {
	if path == "" {
		return scratchRecord(measure.WholeProcess, "snapshot.pickle", studyEntries)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, err
	}
	return &measure.Record{Path: path, Scope: measure.WholeProcess, MaxEntries: studyEntries}, func() {}, nil
}

// sentSteps are enough to see what the first step leaves to the second.
const sentSteps = 2

// Record records steps of a batch under the limit of a request and hands the
// file over.
func Record(ctx context.Context, r analysis.Request, s *measure.Session, batch int64, use func(path string) error) error {
	r.Card = cardOf(s)
	b := &bench{Measured: analysis.Measured{Request: r}, Measurement: Measurement{Session: s}}
	if err := b.setLimit(s.Device); err != nil {
		return err
	}
	record, remove, err := scratchRecord(measure.WholeProcess, fmt.Sprintf("%s-batch-%d.pickle", r.Workload.Name(), batch), sentEntries)
	if err != nil {
		return err
	}
	defer remove()
	found, err := s.Probe(ctx, measure.Probe{Workload: r.Workload, Batches: []int64{batch}, Steps: sentSteps, Limit: b.limit, Record: record}, nil)
	if err != nil {
		return err
	}
	if f := found.Outcomes[0].Failure; f != nil {
		return f
	}
	return use(record.Path)
}

// readRecording reads the device with the most events of a recording.
func readRecording(path string) (*trace.Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := snapshot.Read(f, snapshot.Limits{})
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	if len(s.Devices) == 0 {
		return nil, fmt.Errorf("the recording has no device")
	}
	return slices.MaxFunc(s.Devices, func(a, b *trace.Trace) int { return len(a.Events) - len(b.Events) }), nil
}
