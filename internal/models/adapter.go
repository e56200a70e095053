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
// peft/utils/constants.py). Those of a Mixtral are never looked up: what replaces the
// names of its experts has made an empty set of none before
// (peft/utils/transformers_weight_conversion.py, _convert_peft_config_moe).
var loraTargets = map[string][]string{
	"t5": {"q", "v"}, "mt5": {"q", "v"}, "bart": {"q_proj", "v_proj"}, "gpt2": {"c_attn"}, "bloom": {"query_key_value"},
	"opt": {"q_proj", "v_proj"}, "gptj": {"q_proj", "v_proj"}, "gpt_neox": {"query_key_value"}, "gpt_neo": {"q_proj", "v_proj"},
	"bert": {"query", "value"}, "roberta": {"query", "value"}, "xlm-roberta": {"query", "value"}, "electra": {"query", "value"},
	"deberta-v2": {"query_proj", "value_proj"}, "deberta": {"in_proj"}, "llama": {"q_proj", "v_proj"},
	"mistral": {"q_proj", "v_proj"}, "stablelm": {"q_proj", "v_proj"},
	"phi": {"q_proj", "v_proj", "fc1", "fc2"}, "gemma": {"q_proj", "v_proj"}, "gemma2": {"q_proj", "v_proj"},
	"gemma3_text": {"q_proj", "v_proj"}, "qwen2": {"q_proj", "v_proj"}, "qwen3": {"q_proj", "v_proj"},
}

// LoRATargets are PEFT's own targets for a model type, nil if it has none.
func LoRATargets(modelType string) []string { return loraTargets[modelType] }

// A task's head is trained whole (peft/peft_model.py, PeftModelForSequenceClassification
// and so on). That of some is known only once adapters are there, so it must be no
// target.
var taskHeads = []struct {
	name  string
	heads []string
	late  bool
}{
	{"", nil, false},
	{"SEQ_CLS", []string{"classifier", "score"}, false},
	{"TOKEN_CLS", []string{"classifier", "score"}, true},
	{"QUESTION_ANS", []string{"qa_outputs"}, true},
	{"CAUSAL_LM", nil, false},
	{"SEQ_2_SEQ_LM", nil, false},
	{"FEATURE_EXTRACTION", nil, false},
}

// CheckTask says why PEFT's model of a task cannot be made of an architecture, or called.
func CheckTask(modelType, architecture, task string) error {
	generates := slices.ContainsFunc([]string{"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"},
		func(head string) bool { return strings.HasSuffix(architecture, head) })
	switch {
	case (task == "CAUSAL_LM" || task == "SEQ_2_SEQ_LM") && !generates:
		// PeftModelForCausalLM.__init__ takes prepare_inputs_for_generation of the model.
		return fmt.Errorf("adapter: task_type is %s, but %s does not generate text, and PEFT fails; leave task_type out", task, architecture)
	case task == "FEATURE_EXTRACTION" && slices.Contains([]string{"clip", "siglip", "swin", "whisper"}, modelType):
		// PeftModelForFeatureExtraction.forward passes inputs_embeds and attention_mask, which these hand on twice.
		return fmt.Errorf("adapter: task_type is FEATURE_EXTRACTION, with which PEFT cannot call a %s; leave task_type out", modelType)
	}
	return nil
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
			c.Heads, c.LateHeads = task.heads, task.late
		}
	}
	c.Save = a.Save
	if err := t.CheckLoRA(c); err != nil {
		return err
	}
	if unknown := t.AddLoRA(c); len(unknown) > 0 {
		return fmt.Errorf("adapter: a %s has no layer called %s", modelType, strings.Join(unknown, " or "))
	}
	return nil
}
