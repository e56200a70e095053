package allocator_test

import (
	"path/filepath"
	"slices"
	"testing"

	"memorymark/internal/allocator"
	"memorymark/internal/snapshot/snapshottest"
	"memorymark/internal/trace"
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

// holes lists the recordings whose segments come out differently, because the
// real driver put the first ones into holes of the process's address space and
// free blocks of equal size are taken by address.
var holes = []string{
	"llama_3l_b4_s256_amp-bf16_adamw_train.pickle.xz",
	"t5_3l_b4_s128_amp-bf16_adamw_train.pickle.xz",
}

// A recorded process that is placed anew takes the same segments as it took
// then, in the same order, and replaying what was written down agrees with it.
func TestPlace(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(truthDir, "recorded", "*.pickle.xz"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			recorded := snapshottest.Trace(t, file)
			placed, course, err := allocator.Place(bareTrace(recorded), allocator.Options{Settings: recorded.Settings})
			if err != nil {
				t.Fatal(err)
			}
			if course.Failed != nil {
				t.Fatal(course.Failed)
			}
			same := slices.Equal(segmentSizes(placed), segmentSizes(recorded))
			if known := slices.Contains(holes, filepath.Base(file)); same == known {
				t.Errorf("same segments as recorded: %v; listed as different: %v", same, known)
			}
			replay, err := allocator.NewReplay(placed, 0)
			if err != nil {
				t.Fatal(err)
			}
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

// Play and Place tell the same, stage by stage, and stop where memory ends.
func TestPlayStages(t *testing.T) {
	recorded := bareTrace(snapshottest.Trace(t, filepath.Join(truthDir, "recorded", "bert_3l_b8_s128_fp32_adamw_train.pickle.xz")))
	n := len(recorded.Events)
	whole, err := allocator.Play(recorded, allocator.Options{}, []int{n / 4, n / 2, n})
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Stages) != 3 || whole.Events != n || whole.Failed != nil {
		t.Fatalf("%d stages, %d of %d events, %v", len(whole.Stages), whole.Events, n, whole.Failed)
	}
	if whole.PeakAllocated != max(whole.Stages[1].PeakAllocated, whole.Stages[2].PeakAllocated) {
		t.Errorf("the peak is %d, of the stages %+v", whole.PeakAllocated, whole.Stages[1:])
	}
	limit := whole.PeakAllocated - 1<<20
	placed, course, err := allocator.Place(recorded, allocator.Options{Limit: limit})
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
