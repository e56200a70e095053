package study

import (
	"fmt"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

func TestActivation(t *testing.T) {
	a, err := NewActivation(workloadtest.Parse(t, `{"model": "lm-2.7b", "batch": 4, "sequence": 512, "precision": "amp-bf16", "phase": "forward"}`), workloadtest.Card(t, "a10"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.Residual.Bytes != 20*bytesize.MiB || a.Residual.Numbers != "4 × 512 × 2560 × 4 bytes" || a.Residual.Symbols != "B × S × D × 4 bytes" {
		t.Errorf("the residual stream is %+v, want 20 MiB", a.Residual)
	}
	if a.Scores.Bytes != 128*bytesize.MiB {
		t.Errorf("the scores are %+v, want 128 MiB", a.Scores)
	}
	if a.Kept != a.Blocks+a.Outside || a.Blocks != 32*a.Saved || a.Outside < 0 || a.Kept > a.BackwardPeak || a.BackwardPeak > a.Peak {
		t.Errorf("the sums do not add up: %+v", a)
	}
}

// The names are put on what the prediction allocates; a shape or an order that
// is wrong is an error. Batches and contexts of 1 need fewer copies.
func TestActivationNamesWhatIsAllocated(t *testing.T) {
	for _, size := range Sizes {
		model, err := ModelOf(size)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{1, 2, 5} {
			for _, context := range []int{1, 2, 33, 256} {
				w := workloadtest.Parse(t, fmt.Sprintf(`{"model": %q, "batch": %d, "sequence": %d, "config": {"num_layers": 2}}`, model, batch, context))
				if _, err := NewActivation(w, workloadtest.Card(t, "h200"), nil); err != nil {
					t.Errorf("%s, batch %d, context %d: %v", size, batch, context, err)
				}
			}
		}
	}
}

func TestActivationOfAnotherModel(t *testing.T) {
	if a, err := NewActivation(workloadtest.Parse(t, `{"model": "gpt2"}`), workloadtest.Card(t, "h200"), nil); err == nil {
		t.Errorf("derived %+v", a)
	}
}

func TestSizes(t *testing.T) {
	for _, size := range Sizes {
		id, err := ModelOf(size)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := workload.FindModel(id); err != nil || SizeOf(id) != size {
			t.Errorf("%s is %s, which is %s: %v", size, id, SizeOf(id), err)
		}
	}
	if _, err := ModelOf("huge"); err == nil || err.Error() != `model-size is "huge"; it must be one of small, medium, large, xl, 2.7B` {
		t.Errorf("huge: %v", err)
	}
}

// A rank's buffers lie between the tensors of a block.
func TestActivationsOfOneGPU(t *testing.T) {
	w := workloadtest.Parse(t, `{"model": "lm-small", "parallel": {"kind": "fsdp", "gpus": 8}}`)
	if _, err := NewActivation(w, gpu.All()[0], nil); err == nil || !strings.Contains(err.Error(), "leave out parallel") {
		t.Error(err)
	}
}
