package plan

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/steptime"
	"memorymark/internal/workload"
)

// fakeCards emulate a model that takes weights for all that is trained, less of them
// with adapters, and a GiB for each sample, half of it with checkpointing.
type fakeCards struct {
	weights       bytesize.Bytes
	broken        bool   // whether no steps can be run
	fails         string // in the label of changes whose steps cannot be run
	sketched, ran []string
}

func (f *fakeCards) needs(t change.Trial, batch int64) bytesize.Bytes {
	weights, sample := f.weights, bytesize.GiB
	if t.Workload.Adapter != nil {
		weights /= 4
	}
	if t.Workload.Checkpointing {
		sample /= 2
	}
	return weights + bytesize.Bytes(batch)*sample
}

func (f *fakeCards) Sketch(t change.Trial, _ *gpu.Card, batches []int64) (*Sketch, error) {
	label := change.Labels(t.Changes)
	f.sketched = append(f.sketched, label)
	if f.broken || f.fails != "" && strings.Contains(label, f.fails) {
		return nil, errors.New("it cannot be run\nin line 3")
	}
	out := &Sketch{Parameters: 7e9, Batches: make(map[int64]SketchedBatch), Notes: []string{"PyTorch ran it"}}
	for _, b := range batches {
		if f.needs(t, b) > 400*bytesize.GiB {
			break
		}
		out.Batches[b] = SketchedBatch{Allocated: f.needs(t, b), Work: work(float64(b), t.Workload.Checkpointing)}
	}
	return out, nil
}

// work is that of two passes and an update.
func work(batch float64, again bool) *steptime.Work {
	if again {
		batch *= 1.3
	}
	w := &steptime.Work{Launches: []steptime.Asked{
		{Kind: steptime.Kernel, Type: steptime.FP32, Size: []float64{batch * 1e9}},
		{Kind: steptime.Kernel, Type: steptime.FP32, Backward: true, Size: []float64{batch * 2e9}},
		{Kind: steptime.Kernel, Type: steptime.FP32, Size: []float64{1e9}},
	}}
	w.Order = []int{0, 1, 0, 1, 2}
	return w
}

func (f *fakeCards) On(card *gpu.Card) change.Prober {
	return func(t change.Trial) (*change.Steps, error) {
		f.ran = append(f.ran, card.ID+": "+change.Labels(t.Changes))
		needs, limit := f.needs(t, t.Workload.Batch), t.Workload.Limit()
		return &change.Steps{
			Verdict: predict.VerdictOf(needs <= limit, needs, limit, t.Margin), Peak: allocator.Usage{PeakAllocated: needs, PeakReserved: needs}, StepSeconds: 1,
		}, nil
	}
}

// emulating is the question what a family that is not modelled is trained on.
func emulating(t *testing.T, f *fakeCards, keys, cards string) Question {
	t.Helper()
	q := question(t, `{"config": {"model_type": "fnet"}`+keys+`}`, cards)
	q.Emulation = f
	return q
}

// What is picked was run on its card, and what was not has no verdict.
func TestEmulatedPlan(t *testing.T) {
	f := &fakeCards{weights: 16 * bytesize.GiB}
	p := make1(t, emulating(t, f, ``, "t4, rtx-4090, a100-80gb"))
	if p.Engine != evidence.Emulated || p.Parameters != 7e9 || p.Tokens != 0 || p.Samples != defaultSamples || !slices.Contains(p.Notes, "PyTorch ran it") {
		t.Errorf("%+v", p)
	}
	for _, o := range []*Option{p.Cheapest, p.Fastest, p.Simplest} {
		if o == nil || !o.Simulated || o.Verdict != predict.Fits || o.GPUs != 1 {
			t.Fatalf("%+v", o)
		}
		if label := o.GPU + ": " + change.Labels(o.Changes); !slices.Contains(f.ran, label) {
			t.Errorf("%s was not run: %v", label, f.ran)
		}
	}
	for _, o := range p.Options {
		if o.Simulated == (o.Verdict == "") || o.Batch*o.Passes != DefaultGlobalBatch {
			t.Errorf("%+v", o)
		}
	}
	if i := slices.IndexFunc(p.Misfits, func(m Misfit) bool { return m.GPU == "t4" && m.Trains == change.AllWeights }); i < 0 {
		t.Errorf("16 GiB of weights fit a t4: %+v", p.Misfits)
	}
	if twice := len(f.ran) - len(slices.Compact(slices.Sorted(slices.Values(f.ran)))); twice > 0 {
		t.Errorf("%d runs were made twice: %v", twice, f.ran)
	}
}

// However many cards there are, a plan makes no more runs than it may, and says what it
// left out.
func TestRunsOfAnEmulatedPlan(t *testing.T) {
	f := &fakeCards{weights: 16 * bytesize.GiB}
	q := emulating(t, f, ``, "t4")
	q.Cards = nil
	for _, card := range gpu.All() {
		q.Cards = append(q.Cards, Holding{Card: card})
	}
	p := make1(t, q)
	if n := len(f.sketched) + len(f.ran); n != MaxProbes || p.Cheapest == nil || simulated(p.Options) >= len(p.Options) {
		t.Errorf("%d runs, %d of %d options", n, simulated(p.Options), len(p.Options))
	}
	if !strings.Contains(p.Notes[0], "others may not fit") {
		t.Error(p.Notes[0])
	}
}

// Setups that cannot be run are named, and none that contains them is tried.
func TestFailedSketches(t *testing.T) {
	f := &fakeCards{weights: 16 * bytesize.GiB, fails: "LoRA"}
	p := make1(t, emulating(t, f, `, "precision": "bf16"`, "a100-80gb"))
	if n := strings.Count(strings.Join(f.sketched, "\n"), "LoRA"); n != 2 || p.Cheapest == nil {
		t.Errorf("adapters were tried %d times: %v", n, f.sketched)
	}
	if !slices.Contains(p.Notes, "LoRA of rank 16 was not tried: it cannot be run") {
		t.Error(p.Notes)
	}
	f.fails, f.sketched = "", nil
	if p := make1(t, emulating(t, f, `, "precision": "bf16", "adapter": `+change.LoRA, "a100-80gb")); p.Cheapest.Trains != change.Adapters || !slices.Equal(f.sketched, []string{"", "checkpointing", "4-bit weights", "checkpointing + 4-bit weights"}) {
		t.Error(f.sketched)
	}
}

// A model too large to train whole has adapters planned, and one too large for those is
// refused.
func TestLargeEmulatedPlan(t *testing.T) {
	f := &fakeCards{weights: 500 * bytesize.GiB}
	p := make1(t, emulating(t, f, ``, "b200"))
	if p.Cheapest == nil || p.Cheapest.Trains != change.Adapters || len(p.Options) != 1 || !slices.Contains(p.Notes, "as it is with batch 1 needs more than any card has.") {
		t.Errorf("%+v", p)
	}
	if _, err := Make(t.Context(), emulating(t, &fakeCards{weights: 5000 * bytesize.GiB}, ``, "b200"), nil); err == nil {
		t.Error("nothing of it fits, and there is a plan")
	}
}

func TestEmulatedPlanEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakeCards{weights: 16 * bytesize.GiB}
	q := emulating(t, f, ``, "t4")
	q.Emulation = endingCards{f, cancel}
	if _, err := Make(ctx, q, nil); !errors.Is(err, context.Canceled) || len(f.sketched) != 1 {
		t.Errorf("%v after %v", err, f.sketched)
	}
	q.Emulation = &fakeCards{broken: true}
	if _, err := Make(t.Context(), q, nil); err == nil || len(q.Emulation.(*fakeCards).sketched) != 1 {
		t.Errorf("what cannot be run as it is, was run with changes: %v", err)
	}
	q.Emulation = nil
	if _, err := Make(t.Context(), q, nil); !workload.Unmodelled(err) {
		t.Errorf("predicting it: %v", err)
	}
}

type endingCards struct {
	*fakeCards
	end func()
}

func (e endingCards) Sketch(t change.Trial, card *gpu.Card, batches []int64) (*Sketch, error) {
	e.end()
	_, err := e.fakeCards.Sketch(t, card, batches)
	return nil, errors.Join(errors.New("killed"), err)
}
