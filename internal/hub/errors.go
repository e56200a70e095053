package hub

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// AccessError is a repository of the Hub that cannot be read.
type AccessError struct {
	ID   string
	Why  string
	Hint string // what to do
}

func (e *AccessError) Error() string { return e.ID + ": " + e.Why }

// Fix is what to do.
func (e *AccessError) Fix() string { return e.Hint }

// NoModelError is a repository that does not contain one model.
type NoModelError struct {
	ID   string
	Why  string
	Hint string
}

func (e *NoModelError) Error() string { return e.ID + ": " + e.Why }

// Fix is what to do.
func (e *NoModelError) Fix() string { return e.Hint }

// notOneModel says what a repository contains, by the file that describes it.
func notOneModel(id, file string, data []byte) error {
	if file == "adapter_config.json" {
		return adapter(id, data)
	}
	return pipeline(id, data)
}

// adapter explains an adapter of PEFT: it is trained on its base model.
func adapter(id string, data []byte) error {
	var config struct {
		Base string `json:"base_model_name_or_path"`
		Type string `json:"peft_type"`
		Rank int    `json:"r"`
	}
	_ = json.Unmarshal(data, &config) // what is missing is left out
	e := &NoModelError{ID: id, Why: "it is an adapter, not a model", Hint: "give its base model, with --lora"}
	if _, _, ok := ParseID(config.Base); !ok {
		return e
	}
	e.Why = fmt.Sprintf("it is an adapter of %s, not a model", config.Base)
	e.Hint = "give its base model: " + config.Base
	if config.Type == "LORA" && config.Rank > 0 {
		e.Why = fmt.Sprintf("it is a LoRA adapter of rank %d of %s, not a model", config.Rank, config.Base)
		e.Hint = fmt.Sprintf("give its base model: %s --lora %d", config.Base, config.Rank)
	}
	return e
}

// pipeline explains a pipeline of Diffusers: several models, in folders.
func pipeline(id string, data []byte) error {
	var index map[string]json.RawMessage
	_ = json.Unmarshal(data, &index)
	var class string
	_ = json.Unmarshal(index["_class_name"], &class)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(index)) {
		var library []string // as ["transformers", "CLIPTextModel"]
		if json.Unmarshal(index[name], &library) == nil && len(library) == 2 && library[0] != "" && !strings.HasPrefix(name, "_") {
			parts = append(parts, name)
		}
	}
	e := &NoModelError{
		ID: id, Why: "it is a pipeline of Diffusers, not one model",
		Hint: "run the script that trains it: memorymark run --gpu rtx-4090 -- python train.py",
	}
	if class != "" && len(parts) > 0 {
		e.Why = fmt.Sprintf("it is a pipeline of Diffusers (%s: %s), not one model", class, strings.Join(parts, ", "))
	}
	return e
}
