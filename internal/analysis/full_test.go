//go:build !race

package analysis

import (
	"errors"
	"slices"
	"testing"

	"memorymark/internal/change"
)

// An answer about an adapter also says what training all weights would do,
// the same as an answer about that.
func TestFullFineTuning(t *testing.T) {
	const keys = `"model":"bert","config":{"num_hidden_layers":2},"batch":8`
	with := mustPredict(t, requestOf(t, "t4", `{`+keys+`,"adapter":{"rank":8}}`))
	without := mustPredict(t, requestOf(t, "t4", `{`+keys+`}`))
	f := with.FullFineTuning
	if f == nil || f.OptimalBatch != without.OptimalBatch || f.OptimalBatch >= with.OptimalBatch {
		t.Errorf("full fine-tuning is %+v beside batch %d, and batch %d by itself", f, with.OptimalBatch, without.OptimalBatch)
	}
	if without.FullFineTuning != nil {
		t.Error("an answer without an adapter has full fine-tuning beside it")
	}
}

// Where no change of settings makes a model fit, adapters are proposed, and what
// is proposed fits.
func TestAdaptersProposed(t *testing.T) {
	_, err := Predict(requestOf(t, "rtx-4090", `{"model":"llama-3.1-8b","sequence":512,"batch":1}`))
	var small *TooSmallError
	if !errors.As(err, &small) || len(small.Helps) == 0 {
		t.Fatalf("%v", err)
	}
	i := slices.IndexFunc(small.Helps, func(r ChangeSet) bool { return change.Labels(r.Changes) == "QLoRA of rank 16" })
	if i < 0 {
		t.Fatalf("%+v is proposed", small.Helps)
	}
	a, err := Predict(requestOf(t, "rtx-4090", `{"model":"llama-3.1-8b","sequence":512,"batch":1,"adapter":{"targets":"all-linear"},"quantize":"nf4-double"}`))
	if err != nil || a.CurrentMemory != small.Helps[i].Memory || a.FullFineTuning.Needs < a.Limit {
		t.Errorf("%+v, %v", a, err)
	}
}
