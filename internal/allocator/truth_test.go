package allocator_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/allocator"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
)

const truthDir = "../../testdata/truth"

// mustReplay replays a trace with its own settings.
func mustReplay(tb testing.TB, tr *trace.Trace) *allocator.Replay {
	tb.Helper()
	r, err := allocator.NewReplay(tr, 0, allocator.Levels{})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestTruth replays every recording: each allocation must land at its recorded
// address, each segment must be asked for, returned, mapped and unmapped when
// and where it was, and the final segments and blocks must be the recorded ones.
func TestTruth(t *testing.T) {
	var files []string
	for _, folder := range []string{"snapshots", "recorded"} {
		found, err := filepath.Glob(filepath.Join(truthDir, folder, "*.pickle.xz"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) != 49 {
		t.Fatalf("found %d recordings, want 49", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".pickle.xz"), func(t *testing.T) {
			t.Parallel()
			tr := tracetest.Trace(t, file)
			r := mustReplay(t, tr)
			if d := r.Recorded().Difference; d != nil {
				t.Fatalf("%v%s", d, stackOf(tr, d.Event))
			}
		})
	}
}

// stackOf prints the stack of the event that differs.
func stackOf(tr *trace.Trace, event int) string {
	if event >= len(tr.Events) {
		return ""
	}
	var b strings.Builder
	for _, f := range tr.Stacks.Frames(tr.Events[event].Stack) {
		b.WriteString("\n\t" + f.File + " " + f.Name)
	}
	return b.String()
}

// TestTruthPeaks holds the simulated statistics to what PyTorch's own said in
// the recorded processes.
func TestTruthPeaks(t *testing.T) {
	f, err := os.Open(truthDir + "/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	cases := 0
	for lines.Scan() {
		var c recordedCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases++
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
	if cases != 40 {
		t.Errorf("%d cases, want 40", cases)
	}
}

type recordedCase struct {
	ID       string
	Measured struct {
		ModelAllocated int64   `json:"model_allocated"`
		InputAllocated int64   `json:"input_allocated"`
		PeakAllocated  []int64 `json:"peak_allocated"`
		EndAllocated   []int64 `json:"end_allocated"`
		PeakReserved   []int64 `json:"peak_reserved"`
	}
}

// check finds where the first step began and where it ended by the measured
// levels there (the recording has no marks for them), and compares peaks of
// both steps.
func (c *recordedCase) check(t *testing.T) {
	m := &c.Measured
	tr := tracetest.Trace(t, filepath.Join(truthDir, "recorded", c.ID+".pickle.xz"))
	allocated, reserved := make([]int64, len(tr.Events)), make([]int64, len(tr.Events))
	if _, err := allocator.NewReplay(tr, 0, allocator.Levels{Allocated: allocated, Reserved: reserved}); err != nil {
		t.Fatal(err)
	}
	begin := slices.Index(allocated, m.ModelAllocated+m.InputAllocated)
	if begin < 0 {
		t.Fatalf("allocated bytes never were %d, as after the batch was made", m.ModelAllocated+m.InputAllocated)
	}
	if got := slices.Max(allocated[begin:]); got != slices.Max(m.PeakAllocated) {
		t.Errorf("peak allocated %d, measured %d", got, slices.Max(m.PeakAllocated))
	}
	last := len(allocated) - 1
	if allocated[last] != m.EndAllocated[1] {
		t.Errorf("allocated at the end %d, measured %d", allocated[last], m.EndAllocated[1])
	}
	if got := slices.Max(reserved); got != m.PeakReserved[1] {
		t.Errorf("peak reserved %d, measured %d", got, m.PeakReserved[1])
	}
	if !slices.ContainsFunc(firstStepEnds(allocated, m.EndAllocated[0], begin), func(end int) bool {
		return slices.Max(allocated[begin:end+1]) == m.PeakAllocated[0] &&
			slices.Max(allocated[end:]) == m.PeakAllocated[1] &&
			slices.Max(reserved[:end+1]) == m.PeakReserved[0]
	}) {
		t.Errorf("no point with %d bytes allocated has the measured peaks %v and %v before and after it",
			m.EndAllocated[0], m.PeakAllocated, m.PeakReserved)
	}
}

// firstStepEnds lists where the first step may have ended.
func firstStepEnds(allocated []int64, level int64, begin int) []int {
	var out []int
	for i := begin; i < len(allocated); i++ {
		if allocated[i] == level {
			out = append(out, i)
		}
	}
	return out
}

// TestTruthOutOfMemory runs the recording that ends in an out-of-memory error
// without the driver's answers, under the 8 GiB cap it was recorded with: the
// same request must fail, and what the recording shows of the cap must fit it.
func TestTruthOutOfMemory(t *testing.T) {
	const limit = 8 << 30
	tr := tracetest.Trace(t, truthDir+"/snapshots/gpt2_oom.pickle.xz")
	oom := slices.IndexFunc(tr.Events, func(e trace.Event) bool { return e.Action == trace.OutOfMemory })
	r := mustReplay(t, tr)
	out := r.WhatIf(allocator.WhatIf{Limit: limit})
	if out.Fits() || out.Events != oom {
		t.Errorf("with a limit of 8 GiB the replay stops at event %d (%v), the recording at %d", out.Events, out.Failed, oom)
	}
	if c := r.Recorded().Capacity; c.AtLeast > limit || c.Below <= limit {
		t.Errorf("the recording is said to show a capacity from %d to below %d; it was %d", c.AtLeast, c.Below, limit)
	}
	if out := r.WhatIf(allocator.WhatIf{Limit: 2 * limit}); !out.Fits() || out.Events != oom+1 {
		t.Errorf("with twice the limit it stops at event %d: %v", out.Events, out.Failed)
	}
}

// TestStacks holds the stacks of the final segments and blocks to the
// recorded ones, in processes recorded from their beginning: which block
// remembers whose request is part of the rules (R8, R9).
func TestStacks(t *testing.T) {
	files, err := filepath.Glob(truthDir + "/recorded/*.pickle.xz")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no recordings", err)
	}
	for _, file := range files {
		tr := tracetest.Trace(t, file)
		r := mustReplay(t, tr)
		for i, s := range r.Recorded().Final {
			want := tr.Final[i]
			if s.Stack != want.Stack {
				t.Errorf("%s: segment %#x was made by stack %d, recorded %d", filepath.Base(file), s.Addr, s.Stack, want.Stack)
			}
			for j, b := range s.Blocks {
				if b.Stack != want.Blocks[j].Stack {
					t.Errorf("%s: block %#x was made by stack %d, recorded %d", filepath.Base(file), b.Addr, b.Stack, want.Blocks[j].Stack)
				}
			}
		}
	}
}

// BenchmarkReplay measures allocations and frees a second on a long recording.
func BenchmarkReplay(b *testing.B) {
	tr := tracetest.Trace(b, truthDir+"/snapshots/gpt2_py_30steps.pickle.xz")
	r := mustReplay(b, tr)
	operations := tr.Count(trace.Alloc) + tr.Count(trace.FreeCompleted)
	b.ReportAllocs()
	for b.Loop() {
		r.WhatIf(allocator.WhatIf{})
	}
	b.ReportMetric(float64(operations*b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
}

// TestModelDriver replays the recorded processes with modelled instead of
// recorded addresses. They decide only between free blocks of equal size, so
// peaks hardly change; the test holds how much.
func TestModelDriver(t *testing.T) {
	files, err := filepath.Glob(truthDir + "/recorded/*.pickle.xz")
	if err != nil {
		t.Fatal(err)
	}
	exact := 0
	for _, file := range files {
		r := mustReplay(t, tracetest.Trace(t, file))
		recorded, modelled := r.Recorded().Stats, r.WhatIf(allocator.WhatIf{}).Stats
		allocated, reserved := deviation(recorded.AllocatedBytes, modelled.AllocatedBytes), deviation(recorded.ReservedBytes, modelled.ReservedBytes)
		if allocated == 0 && reserved == 0 {
			exact++
		} else {
			t.Logf("%s: peak allocated %+.3f %%, peak reserved %+.3f %%", filepath.Base(file), 100*allocated, 100*reserved)
		}
		if math.Abs(allocated) > 0.005 || math.Abs(reserved) > 0.05 {
			t.Errorf("%s: that is too much", filepath.Base(file))
		}
	}
	if exact < 39 {
		t.Errorf("%d of %d processes have the recorded peaks, want 39", exact, len(files))
	}
}

func deviation(want, got allocator.StatArray) float64 {
	return float64(got[allocator.All].Peak-want[allocator.All].Peak) / float64(want[allocator.All].Peak)
}

// A pool of CUDA graphs that starts with enough memory takes no other large segment.
func TestGraphPool(t *testing.T) {
	tr := tracetest.Trace(t, filepath.Join(truthDir, "allocator", "graph.pickle.xz"))
	r := mustReplay(t, tr)
	if !r.HasPrivatePools() {
		t.Fatal("the recording of a CUDA graph has no private pool")
	}
	privateLarge := func(segments []trace.Segment) (sizes []int64) {
		for _, s := range segments {
			if s.Pool != (trace.PoolID{}) && !s.Small {
				sizes = append(sizes, s.Size)
			}
		}
		return sizes
	}
	if recorded := privateLarge(r.Recorded().Final); len(recorded) < 2 {
		t.Errorf("the recorded pool has large segments of %v bytes, not several", recorded)
	}
	if with := privateLarge(r.WhatIf(allocator.WhatIf{GraphPool: 64 << 20}).Final); !slices.Equal(with, []int64{64 << 20}) {
		t.Errorf("with 64 MiB from the start the pool ends with large segments of %v bytes", with)
	}
}
