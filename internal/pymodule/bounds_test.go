package pymodule_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"memorymark/internal/predict"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// maxAllocated is what an answer about a model that is too large may allocate, with all
// that is freed again while it is computed.
const maxAllocated = 400 << 20

// TestBuildsAreBounded asks about models of more modules, and about configurations of more
// elements, than any machine holds.
func TestBuildsAreBounded(t *testing.T) {
	library(t)
	if _, err := workload.Parse([]byte(`{"config": {"model_type": "albert"}, "batch": 1, "sequence": 64}`)); err != nil {
		t.Fatal(err) // it imports modules
	}
	for name, config := range map[string]string{
		"modules of a layer": `"model_type": "albert", "inner_group_num": 1000000`,
		"groups of layers":   `"model_type": "albert", "num_hidden_groups": 100000000`,
		"blocks":             `"model_type": "funnel", "block_sizes": [100000000]`,
		"repeated blocks":    `"model_type": "funnel", "block_repeats": [100000000, 1, 1]`,
		"an encoder":         `"model_type": "bart", "encoder_layers": 100000000`,
		"a list by layers":   `"model_type": "qwen3_moe", "num_hidden_layers": 100000000`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := ask(fmt.Appendf(nil, `{"config": {%s}, "batch": 1, "sequence": 64}`, config))
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%d MB were allocated: %v", allocated, err)
			if err == nil || errors.Is(err, predict.ErrFault) || allocated > maxAllocated>>20 {
				t.Errorf("%d MB were allocated: %v", allocated, err)
			}
		})
	}
}

// ask predicts as a server does.
func ask(question []byte) error {
	w, err := workload.Parse(question)
	if err == nil {
		_, err = predict.Run(w, h200, predict.Options{Steps: 2, Budget: workbudget.New(workbudget.PerQuestion, nil)})
	}
	return err
}
