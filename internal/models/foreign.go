package models

import (
	"cmp"
	"fmt"

	"memorymark/internal/hfconfig"
)

// foreign says what a file is that describes a model, but not in transformers'
// way, and where it works; nil if it is none of those.
func foreign(c *hfconfig.Config) error {
	const elsewhere = "memorymark analyze train.py:make measures %s that a function make() of yours returns"
	if kind := c.Text("peft_type"); kind != "" {
		return fmt.Errorf("config is an adapter_config.json of PEFT (%s), which describes an adapter; predict its base model, %s, by its config.json, or: "+
			elsewhere, kind, cmp.Or(c.Text("base_model_name_or_path"), "which it does not name"), "the model with its adapter")
	}
	if class := c.Text("_class_name"); class != "" {
		return fmt.Errorf("config is that of a %s of diffusers, which is not predicted: "+elsewhere, class, "the model")
	}
	if name := c.Text("architecture"); name != "" {
		return fmt.Errorf("config is that of %s of timm, which is not predicted: "+elsewhere, name, "the model")
	}
	return nil
}
