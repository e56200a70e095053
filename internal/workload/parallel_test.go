package workload

import (
	"testing"
)

func TestGPUs(t *testing.T) {
	d := Draft{}
	d.Set("model", "gpt2")
	d.Set("parallel", "fsdp,mixed_precision=bf16")
	key, _ := findKey("parallel")
	d.SetField("parallel", key.Fields[0], "8")
	w, err := d.Workload()
	if err != nil {
		t.Fatal(err)
	}
	if p := w.Parallel; p.GPUs != 8 || p.MixedPrecision != BF16 {
		t.Errorf("parallel is %+v", *p)
	}
}

// Foreach functions do not take what only some ranks share.
func TestTensorParallelOptimizer(t *testing.T) {
	d := Draft{}
	d.Set("model", "llama-3.2-1b")
	d.Set("parallel", "tp,gpus=4")
	if w, err := d.Workload(); err != nil || w.OptimizerImpl != Loop {
		t.Errorf("%+v, %v: it must run one by one", w, err)
	}
}
