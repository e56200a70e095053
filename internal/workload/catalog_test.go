package workload

import (
	"strings"
	"testing"
)

// TestFindModel finds a model by each name that people know it by. Where two
// tasks share a model, its name means the first; an id is never another's name.
func TestFindModel(t *testing.T) {
	for name, want := range map[string]string{
		"bert": "bert", "BERT": "bert", "bert-mlm": "bert-mlm", "google-bert/bert-base-uncased": "bert", "bert-base-uncased": "bert",
		"openai/clip-vit-base-patch32": "clip", "clip-vit-base-patch32": "clip", "meta-llama/llama-3.1-8b": "llama-3.1-8b", "gpt2": "gpt2",
		"Qwen/Qwen2.5-7B-Instruct": "qwen2.5-7b", "mistralai/Mistral-7B-Instruct-v0.3": "mistral-7b-v0.3", "gemma-2-9b-it": "gemma-2-9b",
	} {
		if m, err := FindModel(name); err != nil || m.ID != want {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for name, want := range map[string]string{
		"meta-llama/Llama-3-8B": "similar: llama-3.1-8b", "zzz": "model \"zzz\" is not in the catalog; give",
	} {
		if _, err := FindModel(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, m := range Models() {
		if found, err := FindModel(m.ID); err != nil || found != m {
			t.Errorf("%s is found as %+v, %v", m.ID, found, err)
		}
	}
}
