package models

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"memorymark/internal/torch"
)

// expertTargets are the parameters that PEFT takes for the layers that experts and
// routers were before transformers 5, by model type
// (peft/utils/transformers_weight_conversion.py, _MOE_TARGET_MODULE_MAPPING).
var expertTargets = map[string]map[string]string{
	"mixtral":     {"gate": "gate.weight", "w1": "gate_up_proj", "w3": "gate_up_proj", "w2": "down_proj"},
	"qwen3_moe":   fusedTargets,
	"deepseek_v2": fusedTargets,
}

var fusedTargets = map[string]string{"gate": "gate.weight", "gate_proj": "gate_up_proj", "up_proj": "gate_up_proj", "down_proj": "down_proj"}

// adaptExperts is _convert_peft_config_moe: targets with such a name are no
// layers any more, also where a layer still has it, as in an MLP without experts.
// "all-linear" means them all.
func adaptExperts(c *torch.LoRA, modelType string) error {
	var layers []string
	fused := 0
	for _, name := range slices.Sorted(maps.Keys(expertTargets[modelType])) {
		parameter := expertTargets[modelType][name]
		if !c.AllLinear && !slices.Contains(c.Targets, name) {
			continue
		}
		layers = append(layers, name)
		if parameter == "gate_up_proj" {
			fused++
		}
		if !slices.Contains(c.Parameters, parameter) {
			c.Parameters = append(c.Parameters, parameter)
		}
	}
	switch {
	case len(layers) == 0:
		return nil
	case fused == 1:
		return fmt.Errorf("adapter: PEFT takes %v of a %s for one half of gate_up_proj, and wants the other half too", layers, modelType)
	case c.Dropout > 0:
		return errors.New("adapter: PEFT has no dropout for adapters of experts; set it to 0, or name targets among the attention's layers")
	case c.DoRA:
		return errors.New("adapter: PEFT has no DoRA for experts; name targets among the attention's layers")
	}
	c.Except = layers
	c.Targets = slices.DeleteFunc(slices.Clone(c.Targets), func(target string) bool { return slices.Contains(layers, target) })
	return nil
}
