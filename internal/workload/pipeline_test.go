package workload

import (
	"strings"
	"testing"
)

func TestPipeline(t *testing.T) {
	for text, want := range map[string]string{
		"pipeline,stages=4/12": "pipeline on 2 GPUs, stages of 4/12 layers, 1f1b with 2 microbatches",
		"pipeline,stages=4/4/4/4,schedule=gpipe,microbatches=8,gpus=4": "pipeline on 4 GPUs, stages of 4/4/4/4 layers, gpipe with 8 microbatches",
		`{"kind": "pipeline", "stages": [15, 1], "microbatches": 16}`:  "pipeline on 2 GPUs, stages of 15/1 layers, 1f1b with 16 microbatches",
		"pipeline,stages=8":                      "wrong: gpus of parallel is 1",
		"pipeline":                               "wrong: a pipeline needs stages",
		"pipeline,stages=a/b":                    "wrong: parallel is",
		"pipeline,stages=8/7":                    "wrong: stages have 15 layers in all; the model has 16",
		"pipeline,stages=16/0":                   "wrong: stage 1 has 0 layers",
		"pipeline,stages=8/8,gpus=4":             "wrong: there are 2 stages and 4 gpus",
		"pipeline,stages=8/8,schedule=zb":        `wrong: schedule of parallel is "zb"`,
		"pipeline,stages=8/8,microbatches=3":     "wrong: microbatches is 3; it must divide the batch, which is 16",
		"pipeline,stages=4/4/4/4,microbatches=2": "wrong: microbatches is 2; with 1f1b it must be at least the number of stages, 4",
		"pipeline,stages=8/8,offload":            "wrong: parallel has offload, which pipeline does not use",
		"fsdp,gpus=8,stages=8/8":                 "wrong: parallel has stages, which fsdp does not use",
	} {
		d := Draft{}
		d.Set("model", "llama-3.2-1b")
		d.Set("parallel", text)
		w, err := d.Workload()
		wrong, isWrong := strings.CutPrefix(want, "wrong: ")
		switch {
		case isWrong && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: %v, want it to say %q", text, err, wrong)
		case !isWrong && err != nil:
			t.Errorf("%s: %v", text, err)
		case !isWrong && w.Parallel.Text() != want:
			t.Errorf("%s is %q, want %q", text, w.Parallel.Text(), want)
		}
	}
}

// What of a pipeline is not modelled is refused, each with what it must be.
func TestPipelineNotModelled(t *testing.T) {
	for text, want := range map[string]string{
		`"model": "gpt2", "parallel": {"kind": "pipeline", "stages": [6, 6]}`: "stages of a GPT2LMHeadModel are not modelled",
		`"precision": "amp-bf16"`:    "it must be fp32, tf32 or bf16",
		`"phase": "infer"`:           "it must be train",
		`"accumulate": 2`:            "it must be 1",
		`"clip_grad_norm": true`:     "it must be false",
		`"loop": "trainer"`:          "it must be plain",
		`"adapter": {}`:              "there must be none",
		`"loss": "mean"`:             "it must be labels",
		`"attention_mask": "padded"`: "it must be none",
	} {
		if !strings.Contains(text, "parallel") {
			text += `, "model": "llama-3.2-1b", "parallel": {"kind": "pipeline", "stages": [8, 8]}`
		}
		if _, err := Parse([]byte("{" + text + "}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to say %q", text, err, want)
		}
	}
}
