package allocator_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"memorymark/internal/allocator"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
)

// bareTrace is what a program asked of the allocator in a recording, without
// what the allocator did.
func bareTrace(recorded *trace.Trace) *trace.Trace {
	t := trace.New(recorded.Device, recorded.Tables)
	for _, e := range recorded.Events {
		switch e.Action {
		case trace.Alloc, trace.FreeRequested, trace.FreeCompleted:
			e.Addr, e.Time = 0, 0
			t.Events = append(t.Events, e)
		default:
		}
	}
	return t
}

// gaps lists the recordings whose segments come out differently, because the
// real driver put the first ones into gaps of the process's address space and
// free blocks of equal size are taken by address.
var gaps = []string{
	"llama_3l_b4_s256_amp-bf16_adamw_train.pickle.xz",
}

// A recorded process that is placed again takes the same segments as it took
// then, in the same order, and replaying what was written down agrees with it.
func TestPlace(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(truthDir, "recorded", "*.pickle.xz"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			recorded := tracetest.Trace(t, file)
			placed, course, err := allocator.Place(bareTrace(recorded), allocator.Options{Settings: recorded.Settings})
			if err != nil {
				t.Fatal(err)
			}
			if course.Failed != nil {
				t.Fatal(course.Failed)
			}
			same := slices.Equal(segmentSizes(placed), segmentSizes(recorded))
			if known := slices.Contains(gaps, filepath.Base(file)); same == known {
				t.Errorf("same segments as recorded: %v; listed as different: %v", same, known)
			}
			replay := mustReplay(t, placed)
			if d := replay.Recorded().Difference; d != nil {
				t.Error(d)
			}
		})
	}
}

func segmentSizes(t *trace.Trace) []int64 {
	var sizes []int64
	for _, e := range t.Events {
		if e.Action == trace.SegmentAlloc || e.Action == trace.SegmentMap {
			sizes = append(sizes, e.Size)
		}
	}
	return sizes
}

// Play and Place tell the same, part by part, and stop where memory ends.
func TestPlayParts(t *testing.T) {
	recorded := bareTrace(tracetest.Trace(t, filepath.Join(truthDir, "recorded", "bert_3l_b8_s128_fp32_adamw_train.pickle.xz")))
	n := len(recorded.Events)
	whole, err := allocator.Play(recorded, allocator.Options{}, []int{n / 4, n / 2, n})
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Parts) != 3 || whole.Events != n || whole.Failed != nil {
		t.Fatalf("%d parts, %d of %d events, %v", len(whole.Parts), whole.Events, n, whole.Failed)
	}
	if whole.PeakAllocated != max(whole.Parts[1].PeakAllocated, whole.Parts[2].PeakAllocated) {
		t.Errorf("the peak is %d, of the parts %+v", whole.PeakAllocated, whole.Parts[1:])
	}
	limit := whole.PeakAllocated - 1<<20
	placed, course, err := allocator.Place(recorded, allocator.Options{Limit: int64(limit)})
	if err != nil {
		t.Fatal(err)
	}
	if course.Failed == nil || course.Events >= n {
		t.Fatalf("a limit of %d was not met: %+v", limit, course)
	}
	if last := placed.Events[len(placed.Events)-1]; last.Action != trace.OutOfMemory {
		t.Errorf("the last event is %v", last)
	}
	if err := placed.CheckValid(); err != nil {
		t.Error(err)
	}
}

// TestRepeatedParts: a part that asks for the same again goes as the one before
// did, whether it is played or not. Programs are random, and some of them take
// memory from the driver until their last part.
func TestRepeatedParts(t *testing.T) {
	skipped := 0
	for seed := range uint64(300) {
		tr, ends := repeatedSteps(rand.New(rand.NewPCG(seed, 1)))
		opts := allocator.Options{Limit: []int64{0, 64 << 20}[seed%2]}
		played, err := allocator.Play(tr, opts, ends)
		if err != nil {
			t.Fatal(err)
		}
		opts.Repeats = 2
		short, err := allocator.Play(tr, opts, ends)
		if err != nil {
			t.Fatal(err)
		}
		if short.Stats.Allocations[allocator.All].Allocated < played.Stats.Allocations[allocator.All].Allocated {
			skipped++
		}
		if !slices.Equal(played.Parts, short.Parts) || played.Events != short.Events || played.PeakEvent != short.PeakEvent {
			t.Fatalf("seed %d: %+v is not %+v", seed, short, played)
		}
	}
	if skipped < 30 || skipped > 270 {
		t.Errorf("%d of 300 programs had parts that were not played", skipped)
	}
}

// repeatedSteps is a program that builds something and then does the same four
// times, after which all of it is free again.
func repeatedSteps(r *rand.Rand) (*trace.Trace, []int) {
	tr := trace.New(0, trace.NewTables())
	next := trace.ID(0)
	alloc := func(size int64) trace.ID {
		tr.Events = append(tr.Events, trace.Event{Action: trace.Alloc, ID: next, Size: size})
		next++
		return next - 1
	}
	free := func(id trace.ID) {
		tr.Events = append(tr.Events, trace.Event{Action: trace.FreeRequested, ID: id}, trace.Event{Action: trace.FreeCompleted, ID: id})
	}
	var gaps []trace.ID
	for range r.IntN(20) {
		if id := alloc(1 + r.Int64N(3<<20)); r.IntN(2) == 0 {
			gaps = append(gaps, id)
		}
	}
	for _, id := range gaps {
		free(id)
	}
	step := r.Uint64()
	ends := []int{len(tr.Events)}
	for range 4 {
		s := rand.New(rand.NewPCG(step, 2))
		var live []trace.ID
		for range 40 {
			if i := s.IntN(len(live) + 2); i < len(live) {
				free(live[i])
				live = slices.Delete(live, i, i+1)
			} else {
				live = append(live, alloc(1+s.Int64N(2<<uint(s.IntN(22)))))
			}
		}
		for _, id := range live {
			free(id)
		}
		ends = append(ends, len(tr.Events))
	}
	return tr, ends
}
