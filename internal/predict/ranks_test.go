package predict

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/allocator"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// ranks are the lines of gpus/peaks.jsonl, one rank of a job on many GPUs each.
func ranks(t *testing.T) []measuredPeaks {
	t.Helper()
	type line struct {
		measuredPeaks
		Workload map[string]json.RawMessage `json:"workload"`
		Parallel workload.Parallel          `json:"parallel"`
	}
	var out []measuredPeaks
	for _, l := range readLines[line](t, "gpus/peaks.jsonl") {
		var err error
		if l.Workload["parallel"], err = json.Marshal(l.Parallel); err != nil {
			t.Fatal(err)
		}
		if l.measuredPeaks.Workload, err = json.Marshal(l.Workload); err != nil {
			t.Fatal(err)
		}
		if l.Parallel.Kind == workload.DDP || l.Parallel.Kind == workload.ZeRO1 {
			l.withoutImports()
		}
		out = append(out, l.measuredPeaks)
	}
	return out
}

// withoutImports takes off what is not the model's: transformers imports
// torchaudio while the model is built, under torch.device("cuda"), which makes a
// constant there (torchaudio/compliance/kaldi.py).
func (m *measuredPeaks) withoutImports() {
	const block = 512
	m.Measured.ModelAllocated -= block
	for i := range m.Measured.PeakAllocated {
		m.Measured.PeakAllocated[i] -= block
		m.Measured.EndAllocated[i] -= block
	}
}

// rankFamilies predicts every measured rank, by kind.
func rankFamilies(t *testing.T) map[string]*family {
	t.Helper()
	out := make(map[string]*family)
	for _, r := range ranks(t) {
		w := workloadtest.Parse(t, r.Workload)
		kind := kindOf(w)
		if out[kind] == nil {
			out[kind] = &family{}
		}
		out[kind].add(r, workloadtest.Card(t, "h200"))
	}
	return out
}

// TestRecordedRanks compares ranks that were recorded event by event, and the
// streams of their allocations.
func TestRecordedRanks(t *testing.T) {
	compared := 0
	for _, r := range ranks(t) {
		file := truthDir + "/gpus/recorded/" + r.ID + ".pickle.xz"
		if _, err := os.Stat(file); err != nil {
			continue
		}
		compared++
		t.Run(r.ID, func(t *testing.T) {
			w := workloadtest.Parse(t, r.Workload)
			if w.Parallel.Kind == workload.DDP {
				w.Parallel.GPUs = 1 // as it was recorded
			}
			want := withoutImports(tracetest.Trace(t, file))
			compareRank(t, &program{w: w, late: holdsBuckets(want, r.Measured.Parameters)}, want)
		})
	}
	if compared == 0 {
		t.Error("there are no recordings")
	}
}

// holdsBuckets reports whether DDP's first bucket, as large as all parameters,
// was dropped later than when the next ones were made.
func holdsBuckets(tr *trace.Trace, parameters int64) bool {
	bucket := slices.IndexFunc(tr.Events, func(e trace.Event) bool { return e.Action == trace.FreeRequested && e.Size == 4*parameters })
	return bucket >= 0 && !strings.Contains(caller(tr, bucket), "/parallel/distributed.py")
}

// TestEmulatedRanks does the same with ranks that were not measured: other
// families, uneven parts, types that differ.
func TestEmulatedRanks(t *testing.T) {
	const dir = "testdata/ranks/"
	for _, c := range readLines[recordedProcess](t, "../../internal/predict/"+dir+"cases.jsonl") {
		t.Run(c.ID, func(t *testing.T) {
			w := workloadtest.Parse(t, c.Workload)
			compareRank(t, &program{w: w, rank: c.Rank}, tracetest.Trace(t, dir+c.ID+".pickle.xz"))
		})
	}
}

// compareRank predicts a rank and compares it with a recording.
func compareRank(t *testing.T, p *program, want *trace.Trace) {
	t.Helper()
	w := p.w
	p, err := p.run(h200, steps, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := p.requests()
	if w.Quantize != workload.NotQuantized {
		// Threads load weights in no order; what counts is what DDP and the steps do.
		got, want = since(got, beginOfDDP(got)), since(want, beginOfDDP(want))
	}
	mayReorder := func(event int) bool { return dropsCasts(want, event) || w.Quantize == workload.Int8 } // as with one GPU
	if w.Parallel.Kind == workload.ZeRO1 && onlyGathers(trace.Compare(got, want), 8*w.Parallel.GPUs, mayReorder) {
		return
	}
	if difference := compareRequests(got, want, mayReorder); difference != "" {
		t.Fatal(difference)
	}
	if got, want := streamsOf(got), streamsOf(want); !slices.Equal(got, want) {
		t.Error("the allocations are on other streams")
	}
}

// beginOfDDP finds the first of the numbers that it begins with: how many
// parameters this rank has, and a place for those of each.
func beginOfDDP(tr *trace.Trace) int {
	const number = 8
	isNumber := func(i int) bool { return tr.Events[i].Action == trace.Alloc && tr.Events[i].Size == number }
	for i := range len(tr.Events) - 2 {
		if isNumber(i) && isNumber(i+1) && isNumber(i+2) {
			return i
		}
	}
	return 0
}

// onlyGathers reports whether all that two traces differ in is the tensor that
// NCCL gathers into when DDP begins, of that many bytes: the fake process group of
// the recording has none.
func onlyGathers(c *trace.Comparison, bytes int64, mayReorder func(event int) bool) bool {
	if len(c.Stretches) != 1 || c.Beyond != [2]int{} {
		return false
	}
	for _, event := range c.Reordered {
		if !mayReorder(event) {
			return false
		}
	}
	s := c.Stretches[0]
	return s.To[0] == s.From[0]+2 && s.To[1] == s.From[1] && c.Requests[0][s.From[0]].Size == bytes
}

// withoutImports is the same for a recording.
func withoutImports(tr *trace.Trace) *trace.Trace {
	for i := range tr.Events {
		if tr.Events[i].Action != trace.Alloc {
			continue
		}
		if strings.Contains(caller(tr, i), "kaldi.py") {
			return tr.Since(i + 1)
		}
		break
	}
	return tr
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

// TestLate holds both ways that the race for DDP's first bucket may end to what
// was measured: every process went one of them. Two processes of Llama, measured
// twice, have segments in another order from their first step on.
func TestLate(t *testing.T) {
	late := 0
	for _, r := range ranks(t) {
		w := workloadtest.Parse(t, r.Workload)
		p := mustPredict(t, w, workloadtest.Card(t, "h200"))
		if w.Parallel.Kind != workload.DDP {
			if hasBuckets(w) != (p.Late != nil) {
				t.Errorf("%s: late is %+v", r.ID, p.Late)
			}
			continue
		}
		const last = steps - 1
		off := func(steps []allocator.Usage) float64 {
			reserved := worse(0, int64(steps[last].PeakReserved), r.Measured.PeakReserved[last])
			return math.Abs(worse(reserved, int64(steps[1].PeakAllocated), r.Measured.PeakAllocated[1]))
		}
		inTime, tooLate := off(p.Steps), off(p.Late.Steps)
		if tooLate < inTime {
			late++
		}
		if best := min(inTime, tooLate); best > 0.004 || best > 0 && w.Config.ModelType != "llama" {
			t.Errorf("%s: %.2g off in time, %.2g late", r.ID, inTime, tooLate)
		}
	}
	if late != 4 {
		t.Errorf("%d of 12 processes of DDP were late, want 4", late)
	}
}

// TestPeaksOfRanks predicts every measured rank. Requests are the same where
// they were recorded; where peaks are not, the driver put a segment elsewhere,
// or NCCL's watchdog, which looks every 100 ms, kept DDP's first bucket into the
// second step (Late), which the last step has no more of.
func TestPeaksOfRanks(t *testing.T) {
	var f family
	var settled lineErrors
	for _, r := range ranks(t) {
		f.add(r, workloadtest.Card(t, "h200"))
		p, err := predictLine(r.Workload, workloadtest.Card(t, "h200"))
		if err != nil {
			t.Fatal(err)
		}
		settled = append(settled, lineError{id: r.ID, share: worse(0, int64(p.Steps[steps-1].PeakAllocated), r.Measured.PeakAllocated[steps-1]), parameters: r.Measured.Parameters})
	}
	for _, problem := range f.problems {
		t.Error(problem)
	}
	if e := settled.sum(); e.Exact < f.lines-3 || e.Percentile95 > 0.0007 || e.Worst > 0.006 {
		t.Errorf("allocated in the last step is %+v, it was better; farthest are %s", e, settled.farthest())
	}
	if e := f.allocated.sum(); e.Exact < f.lines-4 || e.Worst > 0.13 {
		t.Errorf("allocated is %+v, it was better; farthest are %s", e, f.allocated.farthest())
	}
	if e := f.reserved.sum(); e.Exact < f.lines-4 || e.Worst > 0.12 {
		t.Errorf("reserved is %+v, it was better; farthest are %s", e, f.reserved.farthest())
	}
}

// TestKindsOfRanks: parts that are not of one size make kinds of ranks, and what
// each takes is what it takes alone.
func TestKindsOfRanks(t *testing.T) {
	for text, want := range map[string][]string{
		`{"model": "gpt2", "batch": 1, "parallel": {"kind": "fsdp", "gpus": 8}}`:  {"0-6", "7"}, // 50257 rows of 8
		`{"model": "gpt2", "batch": 1, "parallel": {"kind": "ddp", "gpus": 8}}`:   nil,
		`{"model": "bert", "batch": 1, "parallel": {"kind": "zero1", "gpus": 2}}`: {"0", "1"},
	} {
		p := mustPredict(t, workloadtest.Parse(t, text), workloadtest.Card(t, "h200"))
		var got []string
		decides := 0
		for _, r := range p.Ranks {
			got = append(got, r.Ranks)
			if r.Decides {
				decides++
			}
			if strings.HasPrefix(r.Ranks, "0") && r.PeakReserved != p.PeakReserved() {
				t.Errorf("%s: rank 0 takes %v, not %v", text, r.PeakReserved, p.PeakReserved())
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || len(want) > 0 && decides != 1 {
			t.Errorf("%s: ranks are %+v", text, p.Ranks)
		}
	}
}
