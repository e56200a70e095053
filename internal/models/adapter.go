package models

import (
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/torch"
)

// Adapter is a LoRA adapter as a workload asks for it.
type Adapter struct {
	Rank     int64
	Targets  []string // "all-linear", names, or none for PEFT's own
	Dropout  float64
	DoRA     bool
	Save     []string // modules_to_save
	TaskType string
	// Float32 keeps the adapters in float32 over a model of another type
	// (autocast_adapter_dtype).
	Float32 bool
}

// loraTargets are PEFT's targets where a configuration names none, by model
// type (TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING,
// peft/utils/constants.py).
var loraTargets = map[string][]string{
	"t5": {"q", "v"}, "mt5": {"q", "v"}, "bart": {"q_proj", "v_proj"}, "gpt2": {"c_attn"}, "bloom": {"query_key_value"},
	"opt": {"q_proj", "v_proj"}, "gptj": {"q_proj", "v_proj"}, "gpt_neox": {"query_key_value"}, "gpt_neo": {"q_proj", "v_proj"},
	"bert": {"query", "value"}, "roberta": {"query", "value"}, "xlm-roberta": {"query", "value"}, "electra": {"query", "value"},
	"deberta-v2": {"query_proj", "value_proj"}, "deberta": {"in_proj"}, "llama": {"q_proj", "v_proj"},
	"mistral": {"q_proj", "v_proj"}, "mixtral": {"q_proj", "v_proj"}, "stablelm": {"q_proj", "v_proj"},
	"phi": {"q_proj", "v_proj", "fc1", "fc2"}, "gemma": {"q_proj", "v_proj"}, "gemma2": {"q_proj", "v_proj"},
	"gemma3_text": {"q_proj", "v_proj"}, "qwen2": {"q_proj", "v_proj"}, "qwen3": {"q_proj", "v_proj"},
}

// LoRATargets are PEFT's own targets for a model type, nil if it has none.
func LoRATargets(modelType string) []string { return loraTargets[modelType] }

// A task's head is trained whole, and is no target
// (peft/peft_model.py, PeftModelForSequenceClassification and so on).
var taskHeads = []struct {
	name  string
	heads []string
}{
	{"", nil},
	{"SEQ_CLS", []string{"classifier", "score"}},
	{"TOKEN_CLS", []string{"classifier", "score"}},
	{"QUESTION_ANS", []string{"qa_outputs"}},
	{"CAUSAL_LM", nil},
	{"SEQ_2_SEQ_LM", nil},
	{"FEATURE_EXTRACTION", nil},
}

// TaskTypes are the values of task_type, none first.
func TaskTypes() []string {
	names := make([]string, len(taskHeads))
	for i, t := range taskHeads {
		names[i] = t.name
	}
	return names
}

// addAdapter is get_peft_model.
func addAdapter(t *torch.Torch, modelType string, a *Adapter, r Run) error {
	c := torch.LoRA{Rank: a.Rank, Targets: a.Targets, Dropout: a.Dropout, DoRA: a.DoRA, DType: r.DType, Train: r.Train, PEFT: r.Versions.peft()}
	if a.Float32 || r.Quantize != torch.NotQuantized {
		c.DType = torch.Float32 // autocast_adapter_dtype
	}
	switch {
	case len(a.Targets) == 0:
		c.Targets = LoRATargets(modelType)
	case slices.Equal(a.Targets, []string{"all-linear"}):
		c.AllLinear, c.Targets = true, nil
	}
	if err := adaptExperts(&c, modelType); err != nil {
		return err
	}
	for _, task := range taskHeads {
		if task.name == a.TaskType {
			c.Heads = task.heads
		}
	}
	c.Save = a.Save
	if unknown := t.AddLoRA(c); len(unknown) > 0 {
		return fmt.Errorf("adapter: a %s has no layer called %s", modelType, strings.Join(unknown, " or "))
	}
	return nil
}
