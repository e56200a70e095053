package workload

import (
	"strings"
	"testing"

	"memorymark/internal/models"
)

func TestVersions(t *testing.T) {
	w, err := Parse([]byte(`{"model": "gpt2", "versions": {"torch": "2.15.0+cu132", "transformers": "5.22.2"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Libraries().String(); got != "PyTorch 2.15 with transformers 5.22" {
		t.Errorf("it runs with %s", got)
	}
	if w, err = Parse([]byte(`{"model": "gpt2"}`)); err != nil || w.Libraries() != models.Reference {
		t.Errorf("without versions it runs with %v, %v", w.Libraries(), err)
	}
}

// TestVersionsUnmodelled: what cannot be predicted can still run.
func TestVersionsUnmodelled(t *testing.T) {
	const asked = `{"model": "gpt2", "versions": {"torch": "2.3"}}`
	_, err := Parse([]byte(asked))
	if want := "gpt2 of PyTorch 2.3 with transformers 5.17 is not modelled; these are: PyTorch 2.11 with transformers 5.17, PyTorch 2.15 with transformers 5.22, PyTorch 2.8 with transformers 4.57, PyTorch 2.6 with transformers 4.51"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("it is predicted, or the error lacks %q: %v", want, err)
	}
	if w, err := ParseRunnable([]byte(asked)); err != nil || w.Unmodelled == "" {
		t.Errorf("it cannot run: %v, %v", w, err)
	}
	for _, bad := range []string{`{"model": "gpt2", "versions": {"torch": "new"}}`, `{"model": "gpt2", "versions": {"pytorch": "2.11"}}`} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// What is held in some versions only without something is not predicted with it.
func TestVersionsBeyondPlain(t *testing.T) {
	const (
		of457 = `"versions": {"torch": "2.8", "transformers": "4.57"}`
		of451 = `"versions": {"torch": "2.6", "transformers": "4.51"}`
	)
	for text, want := range map[string]string{
		`{"model": "gpt2", ` + of457 + `}`:                                                                                 "",
		`{"model": "gpt2", "attention": "eager", ` + of457 + `}`:                                                           "",
		`{"model": "bert", "attention": "eager", ` + of451 + `}`:                                                           "",
		`{"model": "bert", "attention": "eager", ` + of457 + `}`:                                                           "",
		`{"model": "gemma-2-2b", "mode": "eval", ` + of457 + `}`:                                                           "",
		`{"model": "gemma-2-2b", "mode": "eval", ` + of451 + `}`:                                                           "evaluation of PyTorch 2.6 with transformers 4.51 is not modelled",
		`{"model": "gpt2", "loop": "trainer", ` + of457 + `}`:                                                              "",
		`{"model": "gpt2", "loop": "trainer", "optimizer": "adafactor", ` + of457 + `}`:                                    `optimizer "adafactor" of PyTorch 2.8 with transformers 4.57 is not modelled`,
		`{"model": "gpt2", "loop": "lightning", ` + of457 + `}`:                                                            "",
		`{"model": "gpt2", "loop": "lightning", ` + of451 + `}`:                                                            "",
		`{"model": "gpt2", "optimizer": "lion", ` + of451 + `}`:                                                            `optimizer "lion" of PyTorch 2.6 with transformers 4.51 is not modelled`,
		`{"model": "mistral-7b", "config": {"architectures": ["MistralForQuestionAnswering"]}, ` + of451 + `}`:             "MistralForQuestionAnswering of PyTorch 2.6 with transformers 4.51 is not modelled",
		`{"model": "gpt2", "optimizer": "adafactor", ` + of451 + `}`:                                                       "",
		`{"model": "gpt2", "optimizer": "adafactor", "versions": {"torch": "2.15", "transformers": "5.22"}}`:               `optimizer "adafactor" of PyTorch 2.15`,
		`{"model": "qwen2.5-0.5b", "adapter": {"kind": "lora", "rank": 8}, ` + of457 + `}`:                                 "",
		`{"model": "qwen2.5-0.5b", "adapter": {"kind": "lora", "rank": 8, "dora": true}, ` + of457 + `}`:                   "",
		`{"model": "qwen2.5-0.5b", "adapter": {"kind": "lora", "rank": 8, "dora": true}, ` + of451 + `}`:                   "",
		`{"model": "llama-3.2-1b", "adapter": {"kind": "lora", "rank": 8, "dora": true}, ` + of451 + `}`:                   "",
		`{"model": "vit", ` + of457 + `}`:                                                                                  "",
		`{"model": "pythia-160m", "versions": {"torch": "2.15", "transformers": "5.22"}}`:                                  "",
		`{"model": "opt-125m", "loop": "trainer", ` + of457 + `}`:                                                          "",
		`{"model": "opt-125m", "loop": "trainer", ` + of451 + `}`:                                                          `loop "trainer" of PyTorch 2.6 with transformers 4.51 is not modelled`,
		`{"model": "xlm-roberta-base", "loop": "trainer", ` + of457 + `}`:                                                  "",
		`{"model": "llama-3.2-1b", "adapter": {"kind": "lora", "rank": 8}, "loop": "trainer", ` + of451 + `}`:              "",
		`{"model": "llama-3.2-1b", "adapter": {"kind": "lora", "rank": 8, "modules_to_save": ["lm_head"]}, ` + of451 + `}`: "modules_to_save of PyTorch 2.6 with transformers 4.51 is not modelled",
		`{"model": "opt-125m", "adapter": {"kind": "lora", "rank": 8}, ` + of451 + `}`:                                     "an adapter of PyTorch 2.6 with transformers 4.51 is not modelled",
		`{"model": "gpt2", "loop": {"outputs": "kept"}, ` + of451 + `}`:                                                    "",
		`{"model": "vit", ` + of451 + `}`:                                                                                  "vit of PyTorch 2.6 with transformers 4.51 is not modelled; these are: PyTorch 2.11",
	} {
		switch _, err := Parse([]byte(text)); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
