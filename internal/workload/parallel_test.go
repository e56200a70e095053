package workload

import (
	"strings"
	"testing"
)

func TestParallel(t *testing.T) {
	for text, want := range map[string]string{
		"fsdp,gpus=8": "fsdp on 8 GPUs",
		"fsdp,gpus=8,mixed-precision=bf16,offload":                    "fsdp on 8 GPUs, bf16 parameters, offloaded",
		"hsdp,gpus=16,shard=8,reshard_after_forward=false":            "hsdp on 16 GPUs, shards of 8, kept after forward",
		"ddp,gpus=2,gradient-as-bucket-view":                          "ddp on 2 GPUs, gradients in buckets",
		"tp,gpus=4":                                                   "tp on 4 GPUs",
		"fsdp+tp,gpus=8,tensor=2":                                     "fsdp+tp on 8 GPUs, matrices over 2",
		"zero1,gpus=8":                                                "zero1 on 8 GPUs",
		`{"kind": "fsdp", "gpus": 4, "mixed_precision": "bf16"}`:      "fsdp on 4 GPUs, bf16 parameters",
		`{"kind": "fsdp", "gpus": 64, "reshard_after_forward": true}`: "fsdp on 64 GPUs",
	} {
		d := Draft{}
		d.Set("model", "gpt2")
		d.Set("parallel", text)
		w, err := d.Workload()
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := w.Parallel.Text(); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func TestParallelErrors(t *testing.T) {
	for text, want := range map[string]string{
		"fsdp+tp,gpus=8,tensor=3":           "tensor is 3; it must be",
		"pipelines,gpus=8":                  `kind of parallel is "pipelines"; it must be one of`,
		"fsdp":                              "gpus of parallel is 0; it must be from 2",
		"fsdp,gpus=8,ofload":                `"ofload" is not a key of parallel`,
		"hsdp,gpus=16":                      "shard is 0; it must be at least 2 and divide gpus, which is 16",
		"hsdp,gpus=16,shard=5":              "shard is 5; it must be",
		"fsdp,gpus=8,shard=4":               "parallel has shard, which fsdp does not use; besides gpus it has mixed_precision",
		"fsdp,gpus=8,mixed_precision=fp16":  `mixed_precision is "fp16"; it must be bf16`,
		`{"kind": "fsdp", "gpus": "eight"}`: "parallel is",
		`["fsdp"]`:                          "parallel is",
	} {
		d := Draft{}
		d.Set("model", "gpt2")
		d.Set("parallel", text)
		if _, err := d.Workload(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to say %q", text, err, want)
		}
	}
}

// TestParallelAdapters: what PyTorch does to PEFT's layers and to weights in
// integers is predicted, and the rest says what to take instead.
func TestParallelAdapters(t *testing.T) {
	for _, c := range []struct {
		parallel string
		more     map[string]string
		want     string
	}{
		{"ddp,gpus=8", map[string]string{"quantize": "nf4"}, ""},
		{"zero1,gpus=8", map[string]string{"quantize": "int8"}, ""},
		{"fsdp,gpus=8", nil, ""},
		{"hsdp,gpus=16,shard=8", nil, ""},
		{"tp,gpus=8", nil, "with an adapter it must be ddp, zero1, fsdp or hsdp"},
		{"fsdp+tp,gpus=8,tensor=2", nil, "with an adapter it must be"},
		{"fsdp,gpus=8", map[string]string{"quantize": "nf4"}, "with quantize it must be ddp or zero1"},
		{"fsdp,gpus=8", map[string]string{"adapter": `{"kind": "lora", "dora": true}`}, "not modelled with DoRA; it must be ddp or zero1"},
	} {
		d := Draft{}
		d.Set("model", "llama-3.2-1b")
		d.Set("parallel", c.parallel)
		d.Set("adapter", `{"kind": "lora"}`)
		for key, value := range c.more {
			d.Set(key, value)
		}
		switch _, err := d.Workload(); {
		case c.want == "" && err != nil:
			t.Errorf("%s %v: %v", c.parallel, c.more, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s %v: %v, want it to say %q", c.parallel, c.more, err, c.want)
		}
	}
}

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

// TestTensorParallelOptimizer: foreach functions do not take what some ranks
// share and others do not.
func TestTensorParallelOptimizer(t *testing.T) {
	d := Draft{}
	d.Set("model", "llama-3.2-1b")
	d.Set("parallel", "tp,gpus=4")
	if w, err := d.Workload(); err != nil || w.OptimizerImpl != Loop {
		t.Errorf("%+v, %v: it must run one by one", w, err)
	}
	d.Set("optimizer_impl", "foreach")
	if _, err := d.Workload(); err == nil || !strings.Contains(err.Error(), "it must be fused or loop") {
		t.Error(err)
	}
	d.Set("optimizer_impl", "fused")
	d.Set("clip_grad_norm", "true")
	if _, err := d.Workload(); err == nil || !strings.Contains(err.Error(), "clip_grad_norm_ does not work with tp") {
		t.Error(err)
	}
	d.Set("parallel", "fsdp+tp,gpus=8,tensor=2")
	if _, err := d.Workload(); err == nil || !strings.Contains(err.Error(), "clip_grad_norm_ does not work with fsdp+tp") {
		t.Error(err)
	}
}
