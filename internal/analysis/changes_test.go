//go:build !race

package analysis

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"memorymark/internal/change"
	"memorymark/internal/plan"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// A card without bf16 is offered fp16, and no other one is.
func TestChangesFollowTheCard(t *testing.T) {
	for card, want := range map[string]string{"t4": "fp16 autocast", "v100": "fp16 autocast", "a10": "bf16 autocast"} {
		r := request(t, "resnet-18", card)
		r.Changes = true
		a := mustPredict(t, r)
		var names []string
		for _, c := range a.Changes {
			names = append(names, c.Label)
		}
		all := strings.Join(names, ", ")
		if !strings.Contains(all, want) || strings.Contains(all, "bf16") != strings.Contains(want, "bf16") {
			t.Errorf("%s is offered %s", card, all)
		}
	}
}

// Where no single change helps, the least sets that do are found, and what they say is
// what a prediction of the patched workload says.
func TestLeastSets(t *testing.T) {
	r := request(t, "qwen2.5-3b", "a10")
	_, err := Predict(r)
	var small *TooSmallError
	if !errors.As(err, &small) || len(small.Helps) == 0 {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "no single change is enough; batch 16 would fit with checkpointing + bf16 weights + 8-bit AdamW, or ") {
		t.Error(err)
	}
	for _, h := range small.Helps {
		if len(h.Changes) < 2 {
			t.Errorf("%+v, where no single change is enough", h)
		}
		d, err := r.Workload.Draft(nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := change.Apply(d, h.Changes).Workload()
		if err != nil {
			t.Fatal(err)
		}
		p, err := predict.Predict(w, r.Card, predict.Options{})
		if err != nil || p.Verdict != h.Verdict || int64(p.PeakReserved()) != h.Reserved || math.Abs(p.SamplesPerSecond/h.SamplesPerSecond-1) > 0.001 {
			t.Errorf("%+v, predicted %s with %v: %v", h, p.Verdict, p.PeakReserved(), err)
		}
	}
	// Seventy billion parameters are more than a T4 has, even in 4 bits.
	if _, err := Predict(request(t, "llama-3.1-70b", "t4")); err == nil || !strings.Contains(err.Error(), "alone or combined") {
		t.Errorf("got %v", err)
	}
}

// An answer and what fits a card are asked the same, and name the same sets.
func TestSameSetsAsFit(t *testing.T) {
	for _, x := range []struct{ card, draft string }{
		{"t4", `{"model": "llama-3.2-1b", "batch": 8}`},
		{"a10", `{"model": "gpt2", "batch": 128}`},                               // smaller batches train
		{"rtx-4060", `{"model": "gpt2", "sequence": 1024, "precision": "fp32"}`}, // which is given, and stays
		{"rtx-4090", `{"model": "llama-3.1-8b"}`},
		{"t4", `{"model": "llama-3.1-8b"}`}, // nothing helps
	} {
		r := requestOf(t, x.card, x.draft)
		d, err := workload.ParseDraft([]byte(x.draft))
		if err != nil {
			t.Fatal(err)
		}
		r.Given = change.Given(d)
		a, err := Predict(r)
		if no := Refusal(err); no != nil {
			a = no
		} else if err != nil {
			t.Fatal(err)
		}
		fit, err := plan.MakeFit(t.Context(), plan.FitQuestion{Draft: d, Card: r.Card})
		if err != nil {
			t.Fatal(err)
		}
		var ours, theirs [][]change.Change
		for _, h := range a.ToFit {
			ours = append(ours, h.Changes)
		}
		for _, o := range fit.Options {
			theirs = append(theirs, o.Changes)
		}
		if one, other := asJSON(t, ours), asJSON(t, theirs); one != other || a.CurrentFits {
			t.Errorf("%s on %s: to_fit is %s, options are %s", x.draft, x.card, one, other)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
