package analysis

import (
	"errors"
	"strings"
	"testing"

	"memorymark/internal/workload"
)

// A card without bf16 is offered fp16, and no other one is.
func TestChangesFollowTheCard(t *testing.T) {
	for card, want := range map[string]string{"t4": "precision amp-fp16", "v100": "precision amp-fp16", "a10": "precision amp-bf16"} {
		r := request(t, "resnet-18", card)
		r.Changes = true
		a, err := Predict(r)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range a.Changes {
			names = append(names, c.Name)
		}
		all := strings.Join(names, ", ")
		if !strings.Contains(all, want) || strings.Contains(all, "bf16") != strings.Contains(want, "bf16") {
			t.Errorf("%s is offered %s", card, all)
		}
	}
}

// Where no single change helps, the least set that does is found, and each of
// its members is needed.
func TestLeastSets(t *testing.T) {
	r := request(t, "qwen2.5-3b", "a10")
	_, err := Predict(r)
	var small *TooSmallError
	if !errors.As(err, &small) || len(small.Helps) == 0 {
		t.Fatalf("got %v", err)
	}
	for _, c := range small.Helps {
		if !strings.Contains(c.Name, " + ") || c.OptimalBatch == 0 {
			t.Errorf("%+v, where no single change is enough", c)
		}
	}
	if !strings.Contains(err.Error(), "no single change is enough; it would fit with precision bf16 + optimizer sgd") {
		t.Error(err)
	}
	with := request(t, "qwen2.5-3b", "a10", func(w *workload.Workload) { w.Precision, w.Optimizer = workload.BF16, workload.SGD })
	if !trains(with, small.Helps[0].OptimalBatch, 1) {
		t.Errorf("%+v does not train", small.Helps[0])
	}
	// Eight billion parameters in fp32 are more than a T4 has, whatever is changed.
	if _, err := Predict(request(t, "llama-3.1-8b", "t4")); err == nil || !strings.Contains(err.Error(), "alone or combined") {
		t.Errorf("got %v", err)
	}
}
