package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/predict"
	"memorymark/internal/workbudget"
)

// fake is a probe of a model whose batch takes a GiB for each sample in addition to its
// weights, which it halves with each change of the table.
type fake struct {
	weights bytesize.Bytes
	fails   string // in the label of a change whose steps cannot be run
	tried   []string
}

func (f *fake) probe(t Trial) (*Steps, error) {
	label := Labels(t.Changes)
	f.tried = append(f.tried, label)
	if f.fails != "" && strings.Contains(label, f.fails) {
		return nil, errors.New("it cannot be run")
	}
	weights, limit := f.weights, t.Workload.Limit()
	for _, c := range t.Changes {
		if !c.Splits() {
			weights /= 2
		}
	}
	needs := weights + bytesize.Bytes(t.Workload.Batch)*bytesize.GiB
	return &Steps{Verdict: predict.VerdictOf(needs <= limit, needs, limit, t.Margin), Peak: allocator.Usage{PeakReserved: needs}}, nil
}

// probing is the question with which changes a model of a family that is not modelled
// trains on 16 GiB.
func probing(t *testing.T, f *fake, batch int64) Question {
	t.Helper()
	q := question(t, `{"model": "gpt2"}`, "a10")
	delete(q.Draft, "model")
	q.Draft["config"], q.Draft["batch"], q.Given = []byte(`{"model_type": "falcon"}`), number(batch), nil
	q.Limit, q.Margin = 16*bytesize.GiB, bytesize.GiB/2
	q.Probe, q.Probes, q.Most = f.probe, 28, 2
	return q
}

// Where single changes are enough, all of them are tried, and no pair.
func TestProbesEndWithASize(t *testing.T) {
	f := &fake{weights: 20 * bytesize.GiB}
	a := least(t, probing(t, f, 4))
	if len(a.Sets) < 5 || len(a.Failed) > 0 || a.Untried > 0 || a.Nearest != nil {
		t.Errorf("%v, %v failed, %d untried", labels(a), a.Failed, a.Untried)
	}
	for _, kind := range []string{"checkpointing", "SGD", "LoRA of rank 16"} {
		if !slices.Contains(f.tried, kind) {
			t.Errorf("%s was not tried: %v", kind, f.tried)
		}
	}
	for _, s := range a.Sets {
		if s.Verdict != predict.Fits || len(s.Changes) != 1 {
			t.Errorf("%s: %v", Labels(s.Changes), s.Verdict)
		}
	}
	if i := slices.IndexFunc(f.tried, func(label string) bool { return strings.Contains(label, " + ") }); i >= 0 {
		t.Errorf("%s was tried", f.tried[i])
	}
}

// Pairs are tried where no single change is enough, but for those with what moves the
// edge, and no attempt is made twice.
func TestPairsOfProbes(t *testing.T) {
	f := &fake{weights: 40 * bytesize.GiB}
	q := probing(t, f, 4)
	a := least(t, q)
	if len(a.Sets) == 0 || len(a.Sets[0].Changes) != 2 || a.Untried > 0 {
		t.Errorf("%v, %d untried", labels(a), a.Untried)
	}
	slices.Sort(f.tried)
	if twice := len(f.tried) - len(slices.Compact(slices.Clone(f.tried))); twice > 0 {
		t.Errorf("%d attempts were made twice: %v", twice, f.tried)
	}
	for _, label := range f.tried {
		if strings.Contains(label, " + ") && (strings.Contains(label, "expandable") || strings.Contains(label, "fused")) {
			t.Errorf("%s was tried", label)
		}
	}
}

// The search makes no more probes than it may, and says how many sets it left out.
func TestMostProbes(t *testing.T) {
	all, some := &fake{weights: 1000 * bytesize.GiB}, &fake{weights: 1000 * bytesize.GiB}
	q := probing(t, all, 64)
	if a := least(t, q); len(all.tried) != 27 || a.Untried > 0 || len(a.Sets) > 0 {
		t.Errorf("%d probes, %d untried, %v", len(all.tried), a.Untried, labels(a))
	}
	q.Probe, q.Probes = some.probe, 20
	if a := least(t, q); !slices.Equal(some.tried, all.tried[:20]) || a.Untried != 7 {
		t.Errorf("%d untried after %v", a.Untried, some.tried)
	}
}

// The split that is found is the largest that leaves the margin, as of predictions.
func TestSplitsOfProbes(t *testing.T) {
	f := &fake{weights: 11 * bytesize.GiB}
	a := least(t, probing(t, f, 16))
	i := slices.IndexFunc(a.Sets, func(s Set) bool { return s.Changes[0].Splits() })
	if i < 0 || a.Sets[i].Workload.Batch != 4 || a.Sets[i].Workload.Accumulate != 4 {
		t.Errorf("%v", labels(a))
	}
}

// What cannot be run is said, and nothing that contains it is tried.
func TestFailedProbes(t *testing.T) {
	f := &fake{weights: 40 * bytesize.GiB, fails: "8-bit AdamW"}
	a := least(t, probing(t, f, 4))
	if len(a.Failed) != 1 || Labels(a.Failed[0].Changes) != "8-bit AdamW" || a.Failed[0].Err == nil {
		t.Errorf("%v", a.Failed)
	}
	if n := strings.Count(strings.Join(f.tried, "\n"), "8-bit AdamW"); n != 1 {
		t.Errorf("it was tried %d times", n)
	}
}

// The search ends with the first probe after its context.
func TestProbesEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{weights: 40 * bytesize.GiB}
	q := probing(t, f, 4)
	q.Work = workbudget.New(1<<40, ctx.Err)
	q.Probe = func(trial Trial) (*Steps, error) {
		cancel()
		_, err := f.probe(trial)
		return nil, errors.Join(fmt.Errorf("killed"), err)
	}
	if a, err := Least(q); !errors.Is(err, context.Canceled) || len(f.tried) != 1 {
		t.Errorf("%v, %v after %d probes", a, err, len(f.tried))
	}
}

// A probe that predicts finds what predictions find.
func TestProbesFindWhatPredictionsFind(t *testing.T) {
	for _, x := range [][2]string{
		{`{"model": "gpt2", "batch": 32}`, "rtx-4060"},
		{`{"model": "bert", "batch": 512, "precision": "fp32"}`, "a10"},
	} {
		q := question(t, x[0], x[1])
		want := labels(least(t, q))
		q.Probe, q.Probes, q.Most = Predicting(q.Card, nil), 100, 2
		if got := labels(least(t, q)); !slices.Equal(got, want) {
			t.Errorf("%s on %s: %v, predicted are %v", x[0], x[1], got, want)
		}
	}
}
