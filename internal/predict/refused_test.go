package predict

import (
	"strings"
	"testing"

	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// TestRefused: what the libraries refuse is refused, with what to do, and what is
// nearest to it is not. Every first one was tried on an H200, but FSDP's, which is read.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ keys, why string }{
		{`"model": "electra-base", "adapter": {"targets": "all-linear", "task_type": "SEQ_CLS"}, "quantize": "int8"`, "integers have no gradient"},
		{`"model": "deberta-v3-small", "precision": "bf16", "adapter": {"targets": "all-linear", "modules_to_save": ["classifier"]}, "quantize": "nf4-double"`, "integers have no gradient"},
		{`"model": "electra-base", "adapter": {"targets": "all-linear", "task_type": "SEQ_CLS"}`, ""},
		{`"model": "llama-3.2-1b", "config": {"num_hidden_layers": 1, "architectures": ["LlamaForSequenceClassification"]}, "adapter": {"task_type": "SEQ_CLS"}, "quantize": "nf4"`, ""}, // its head has no bias, so it stays as it is
		{`"model": "xlm-roberta-base", "config": {"architectures": ["XLMRobertaForTokenClassification"]}, "adapter": {"targets": "all-linear", "task_type": "TOKEN_CLS"}`, "train it whole"},
		{`"model": "xlm-roberta-base", "config": {"architectures": ["XLMRobertaForTokenClassification"]}, "adapter": {"task_type": "TOKEN_CLS"}`, ""},
		{`"model": "mixtral-8x22b", "config": {"num_hidden_layers": 1}, "adapter": {}`, "no default targets"},
		{`"model": "whisper-base", "adapter": {"targets": "all-linear", "task_type": "FEATURE_EXTRACTION"}`, "leave task_type out"},
		{`"model": "dinov2-small", "adapter": {"targets": "all-linear", "task_type": "FEATURE_EXTRACTION"}`, ""},
		{`"model": "opt-125m", "config": {"architectures": ["OPTForQuestionAnswering"]}, "adapter": {"task_type": "CAUSAL_LM"}`, "does not generate text"},
		{`"model": "opt-125m", "adapter": {"task_type": "CAUSAL_LM"}`, ""},
		{`"model": "deberta-v3-small", "precision": "amp-bf16", "adapter": {}, "quantize": "int8"`, "without overflow"},
		{`"model": "deberta-v3-small", "precision": "bf16", "adapter": {}, "quantize": "int8"`, ""},
		{`"model": "electra-small", "config": {"architectures": ["ElectraModel"]}, "loop": "trainer"`, "trains on the loss"},
		{`"model": "electra-small", "config": {"architectures": ["ElectraModel"]}, "loop": "lightning"`, ""},
		{`"model": "gpt2", "precision": "amp-bf16", "loop": "lightning", "optimizer_impl": "fused", "clip_grad_norm": true`, "does not clip"},
		{`"model": "gpt2", "precision": "bf16", "loop": "lightning", "optimizer_impl": "fused", "clip_grad_norm": true`, ""},
		{`"model": "clip", "parallel": {"kind": "fsdp", "gpus": 4}`, "without a dimension"}, // logit_scale
		{`"model": "clip", "parallel": {"kind": "ddp", "gpus": 4, "static_graph": true}`, ""},
	} {
		w, err := workload.Parse([]byte(`{"batch": 1, ` + c.keys + `}`))
		if err == nil {
			_, err = Predict(w, workloadtest.Card(t, "h200"), Options{})
		}
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.keys, err)
		}
	}
}
