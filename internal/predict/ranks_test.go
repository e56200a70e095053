package predict

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"memorymark/internal/snapshot/snapshottest"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// ranks are the lines of gpus/peaks.jsonl, one rank of a job on many GPUs each,
// less the kinds that are not modelled yet.
func ranks(t *testing.T) []measuredPeaks {
	t.Helper()
	type line struct {
		measuredPeaks
		Workload map[string]json.RawMessage `json:"workload"`
		Parallel workload.Parallel          `json:"parallel"`
	}
	var out []measuredPeaks
	for _, l := range readLines[line](t, "gpus/peaks.jsonl") {
		if !slices.Contains(workload.ParallelKinds(), string(l.Parallel.Kind)) {
			continue
		}
		var err error
		if l.Workload["parallel"], err = json.Marshal(l.Parallel); err != nil {
			t.Fatal(err)
		}
		if l.measuredPeaks.Workload, err = json.Marshal(l.Workload); err != nil {
			t.Fatal(err)
		}
		out = append(out, l.measuredPeaks)
	}
	return out
}

// TestRecordedRanks compares ranks that were recorded event by event, and the
// streams of their allocations.
func TestRecordedRanks(t *testing.T) {
	for _, r := range ranks(t) {
		file := truthDir + "/gpus/recorded/" + r.ID + ".pickle.xz"
		if _, err := os.Stat(file); err != nil {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			w, err := workload.Parse(r.Workload)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Run(w, h200, steps)
			if err != nil {
				t.Fatal(err)
			}
			want := snapshottest.Trace(t, file)
			if difference := compareRequests(p.Trace(), want, func(event int) bool { return dropsCasts(want, event) }); difference != "" {
				t.Fatal(difference)
			}
			if got, want := streamsOf(p.Trace()), streamsOf(want); !slices.Equal(got, want) {
				t.Error("the allocations are on other streams")
			}
		})
	}
}

// streamsOf are the streams of a trace's allocations, numbered as they come.
func streamsOf(tr *trace.Trace) []int {
	number := make(map[uint16]int)
	var out []int
	for _, e := range tr.Events {
		if e.Action != trace.Alloc {
			continue
		}
		n, ok := number[e.Stream]
		if !ok {
			n = len(number)
			number[e.Stream] = n
		}
		out = append(out, n)
	}
	return out
}

// TestPeaksOfRanks predicts every measured rank.
func TestPeaksOfRanks(t *testing.T) {
	var f family
	for _, r := range ranks(t) {
		f.add(r, h200Card(t))
	}
	for _, problem := range f.problems {
		t.Error(problem)
	}
	// Where they differ, requests are the same: the driver put a segment elsewhere.
	if e := f.allocated.sum(); e.Exact < f.lines-4 || e.Percentile95 > 0.0005 || e.Worst > 0.003 {
		t.Errorf("allocated is %+v, it was better; farthest are %s", e, f.allocated.farthest())
	}
	if e := f.reserved.sum(); e.Exact < f.lines {
		t.Errorf("reserved is %+v, it was better; farthest are %s", e, f.reserved.farthest())
	}
}
