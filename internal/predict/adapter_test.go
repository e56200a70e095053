package predict

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"memorymark/internal/models/modelstest"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

const adapterDir = "testdata/adapters"

// TestRecordedAdapters predicts processes that train adapters and compares them
// event by event with recordings of PEFT and bitsandbytes on an H200, or an
// emulated one (record.py there).
func TestRecordedAdapters(t *testing.T) {
	f, err := os.Open(adapterDir + "/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c recordedProcess
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			w, err := workload.Parse(c.Workload)
			modelstest.NeedSourceFor(t, err)
			if err != nil {
				t.Fatal(err)
			}
			p := ran(t, w, h200, 2)
			want := tracetest.Trace(t, adapterDir+"/"+c.ID+".pickle.xz")
			got := p.requests()
			if w.Quantize != workload.NotQuantized {
				// Threads load weights in no order; what counts is what they leave.
				got, want = since(got, p.modelEvents), since(want, eventOf(want, got.Events[p.modelEvents].Size))
			}
			difference := compareRequests(got, want, func(event int) bool {
				// Nodes written in Python, as bitsandbytes' of 8 bits, go in an order of
				// their own when the loss does, and with them what they keep.
				return dropsCasts(want, event) || w.Quantize == workload.Int8
			})
			if difference != "" {
				t.Error(difference)
			}
		})
	}
}

// eventOf finds the first allocation of a size.
func eventOf(t *trace.Trace, size int64) int {
	return slices.IndexFunc(t.Events, func(e trace.Event) bool { return e.Action == trace.Alloc && e.Size == size })
}

// since is what a trace does from an allocation on, with what it allocates
// then.
func since(t *trace.Trace, event int) *trace.Trace {
	rest, first := *t, t.Events[event].ID
	rest.Events, rest.Initial = nil, nil
	for _, e := range t.Events[event:] {
		if e.ID >= first {
			e.ID -= first
			rest.Events = append(rest.Events, e)
		}
	}
	return &rest
}

// measuredAdapters predicts the workloads with adapters that were measured, by
// their kind.
func measuredAdapters(t *testing.T) map[string]*family {
	t.Helper()
	kinds := make(map[string]*family)
	for _, line := range readLines[measuredPeaks](t, "adapters.jsonl") {
		w := workloadtest.Parse(t, line.Workload)
		name := kindOf(w)
		if kinds[name] == nil {
			kinds[name] = &family{}
		}
		kinds[name].add(line, workloadtest.Card(t, "h200"))
	}
	return kinds
}

// TestMeasuredAdapters holds predictions to peaks of PEFT and bitsandbytes on an
// H200.
func TestMeasuredAdapters(t *testing.T) {
	for name, f := range measuredAdapters(t) {
		if e := f.allocated.sum(); f.unmodelled > 0 || e.Worst > 0.003 {
			t.Errorf("%s: allocated is %+v, it was better; farthest are %s", name, e, f.allocated.farthest())
		}
		if e := f.reserved.sum(); e.Percentile95 > 0.24 || e.Median > 0.003 {
			t.Errorf("%s: reserved is %+v, it was better; farthest are %s", name, e, f.reserved.farthest())
		}
	}
}
