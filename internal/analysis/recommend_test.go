//go:build !race

package analysis

import (
	"fmt"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// withLengths trains on texts of the lengths of the examples, as --lengths says.
func withLengths(t *testing.T) func(*workload.Workload) {
	t.Helper()
	lengths := exampleLengths(t)
	return func(w *workload.Workload) {
		w.Lengths, w.Sequence, w.AttentionMask = lengths, lengths.Longest(), workload.Padded
	}
}

// The recommended batch is compared with the fastest that was looked at, not with the
// largest: with samples of different lengths, large batches are mostly padding.
func TestRecommendedIsFast(t *testing.T) {
	for _, model := range []string{"gpt2", "bert"} {
		for _, batch := range []int64{1, 4, 64} {
			a := mustPredict(t, request(t, model, "a100-80gb", withLengths(t), func(w *workload.Workload) { w.Batch = batch }))
			checkRecommended(t, a)
			if got := a.result(a.Recommended).SamplesPerSecond; a.Tight || got < worthwhile*a.fastest().SamplesPerSecond {
				t.Errorf("%s: batch %d is recommended with %v samples/s; batch %d has %v", model, a.Recommended, got, a.fastest().Batch, a.fastest().SamplesPerSecond)
			}
		}
	}
}

// checkRecommended: what is recommended leaves the margin unless it is called tight,
// and where the present batch is faster the answer says why not that.
func checkRecommended(t *testing.T, a *Answer) {
	t.Helper()
	recommended, present := a.result(a.Recommended), a.result(a.CurrentBatch)
	if recommended.Verdict != predict.Fits && !a.Tight {
		t.Errorf("batch %d is recommended, and is %s with %v left", a.Recommended, recommended.Verdict, a.left(a.Recommended))
	}
	faster := present.Success && present.SamplesPerSecond > recommended.SamplesPerSecond
	said := fmt.Sprintf("your batch of %d is ", a.CurrentBatch)
	for _, n := range a.Notes {
		if n.About == "recommended" && strings.Contains(n.Text, said) != faster {
			t.Errorf("the present batch is faster: %v, and the answer says %q", faster, n.Text)
		}
	}
}

// Where the present batch is faster and not recommended, there is a reason.
func TestSlowerThanPresent(t *testing.T) {
	for batch, why := range map[int64]string{64: "and takes ", 90: "and leaves only "} {
		a := mustPredict(t, request(t, "gpt2", "a10", func(w *workload.Workload) { w.Batch = batch }))
		checkRecommended(t, a)
		var notes []string
		for _, n := range a.Notes {
			notes = append(notes, n.Text)
		}
		if all := strings.Join(notes, "\n"); !strings.Contains(all, why) {
			t.Errorf("batch %d: no note says %q: %s", batch, why, all)
		}
	}
}

// What is no multiple of the unit is not recommended, however fast it is.
func TestPresentIsNoMultiple(t *testing.T) {
	r := request(t, "gpt2", "rtx-4060", func(w *workload.Workload) { w.Sequence, w.Batch = 1024, 3 })
	r.MultipleOf = 2
	a := mustPredict(t, r)
	checkRecommended(t, a)
	for _, n := range a.Notes {
		if n.About == "recommended" && !strings.HasSuffix(n.Text, "faster, and no multiple of 2") {
			t.Error(n.Text)
		}
	}
}

// A verdict is by what is left of the limit, and the margin by the card.
func TestVerdicts(t *testing.T) {
	for card, margin := range map[string]bytesize.Bytes{"rtx-4060": 300 * bytesize.MiB, "a100-80gb": 1624 * bytesize.MiB} {
		a := mustPredict(t, request(t, "gpt2", card))
		if off := a.Margin - int64(margin); off < -1<<20 || off > 1<<20 {
			t.Errorf("the margin of %s is %v, want %v", card, bytesize.Bytes(a.Margin), margin)
		}
		for _, r := range a.Results {
			want := predict.Fits
			if r.Reserved > a.Limit-a.Margin {
				want = predict.Tight
			}
			if !r.Success {
				want = predict.DoesNotFit
			}
			if r.Verdict != want {
				t.Errorf("%+v of %d, margin %d", r, a.Limit, a.Margin)
			}
		}
	}
}
