// Package hfconfig reads the config.json files of Hugging Face: what kind of
// model one describes, its keys, and which of them were not looked at. What a
// family's keys mean is the family's business.
package hfconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/invalid"
)

// Config is a Hugging Face config.json: what kind of model it is, and its keys.
type Config struct {
	ModelType    string
	Architecture string
	keys         map[string]json.RawMessage
}

// UnmarshalJSON reads the object of a config.json.
func (c *Config) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &c.keys); err != nil {
		return errors.New("config must be a JSON object, like a config.json")
	}
	var head struct {
		ModelType     string   `json:"model_type"`
		Architectures []string `json:"architectures"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return errors.New("config: model_type must be text, and architectures a list of texts")
	}
	c.ModelType = head.ModelType
	if len(head.Architectures) > 0 {
		c.Architecture = head.Architectures[0]
	}
	return nil
}

// MarshalJSON writes the object as it was read.
func (c *Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.keys) }

// With returns the configuration with some keys replaced.
func (c *Config) With(own *Config) *Config {
	out := *c
	out.keys = maps.Clone(c.keys)
	if own != nil {
		maps.Copy(out.keys, own.keys)
		if own.ModelType != "" {
			out.ModelType = own.ModelType
		}
		if own.Architecture != "" {
			out.Architecture = own.Architecture
		}
	}
	return &out
}

// Renamed is the configuration with other names for some keys: transformers
// takes both (PretrainedConfig.attribute_map). Where both are there, as in BART's,
// the one that the family has for its own counts.
func (c *Config) Renamed(names map[string]string) *Config {
	out := *c
	out.keys = make(map[string]json.RawMessage, len(c.keys))
	for key, raw := range c.keys {
		if name, ok := names[key]; ok {
			if _, both := c.keys[name]; both {
				continue
			}
			key = name
		}
		out.keys[key] = raw
	}
	return &out
}

// HubID is the id under which the Hugging Face Hub has the model, empty if it does
// not come from there. Like from_pretrained, its reader adds the commit; a saved
// config.json has only an old name.
func (c *Config) HubID() string {
	var id, commit string
	_ = json.Unmarshal(c.keys["_commit_hash"], &commit)
	if _ = json.Unmarshal(c.keys["_name_or_path"], &id); commit == "" {
		return ""
	}
	return id
}

// Int reads a key that holds a whole number, if there is one.
func (c *Config) Int(key string, into *int64) bool {
	var n int64
	if raw, ok := c.keys[key]; !ok || json.Unmarshal(raw, &n) != nil {
		return false
	}
	*into = n
	return true
}

// WithInt returns the configuration with another whole number under a key.
func (c *Config) WithInt(key string, n int64) *Config {
	out := *c
	out.keys = maps.Clone(c.keys)
	out.keys[key] = json.RawMessage(strconv.FormatInt(n, 10))
	return &out
}

// ignored are keys of every configuration that say nothing about memory: names
// and versions, token ids, settings of generation and of initial weights.
var ignored = []string{
	"_name_or_path", "_attn_implementation_autoset", "_commit_hash", "architectures", "bos_token_id", "dtype", "eos_token_id", "id2label",
	"initializer_factor", "initializer_range", "label2id", "model_type", "pad_token_id", "problem_type", "sep_token_id", "task_specific_params",
	"tokenizer_class", "torch_dtype", "transformers_version", "attn_implementation", "return_dict", "output_attentions", "output_hidden_states",
	"num_labels", "finetuning_task", "max_length", "min_length", "do_sample", "num_beams", "temperature", "top_k", "top_p", "repetition_penalty",
	"length_penalty", "no_repeat_ngram_size", "num_return_sequences", "early_stopping", "prefix", "decoder_start_token_id", "is_encoder_decoder",
	"use_bfloat16", "gradient_checkpointing", "tie_weights_", "auto_map",
	"dense_act_fn", "is_gated_act", // T5Config derives them from feed_forward_proj
}

// switches are keys that say nothing about memory as long as they are off.
var switches = []string{
	"add_cross_attention", "chunk_size_feed_forward", "is_decoder", "pruned_heads", "quantization_config", "sinusoidal_pos_embds",
	"tie_encoder_decoder", "torchscript", "use_mrope",
}

// Decode reads the keys of a configuration into a struct that holds the
// family's defaults, and checks the sizes. A key that the struct does not
// have, and that is not known to say nothing about memory, is an error: it
// might. The error names all that is wrong.
func (c *Config) Decode(into any, alsoIgnored ...string) error {
	known := fieldNames(into)
	var wrong invalid.Error
	for _, key := range slices.Sorted(maps.Keys(c.keys)) {
		if wrong.Enough() {
			break
		}
		field, ok := known[key]
		switch {
		case !ok && (slices.Contains(ignored, key) || slices.Contains(alsoIgnored, key)):
		case !ok && slices.Contains(switches, key) && isOff(c.keys[key]):
		case !ok:
			wrong.Add(invalid.At(key, fmt.Errorf("config: %q of a %s is not modelled; remove it if it does not change the model", key, c.ModelType)))
		default:
			if err := json.Unmarshal(c.keys[key], field); err != nil {
				wrong.Add(invalid.At(key, fmt.Errorf("config: %w", invalid.Kind(key, c.keys[key], field, err))))
			}
		}
	}
	wrong.Add(c.countLabels(known))
	if len(wrong.Problems) == 0 {
		checkSizes(known, &wrong)
	}
	return wrong.OrNil()
}

// countLabels reads num_labels off id2label, where configurations of published
// models have it; num_labels itself counts only where that is missing
// (PreTrainedConfig.__post_init__).
func (c *Config) countLabels(known map[string]any) error {
	count, ok := known["num_labels"].(*int64)
	if !ok || c.keys["id2label"] == nil {
		return nil
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal(c.keys["id2label"], &names); err != nil {
		return fmt.Errorf("config: id2label is %s: %w", invalid.Shorten(c.keys["id2label"]), err)
	}
	if names != nil {
		*count = int64(len(names))
	}
	return nil
}

// isOff reports whether a value is what Python takes for false.
func isOff(raw json.RawMessage) bool {
	return slices.Contains([]string{"false", "null", "0", "{}", "[]", `""`}, strings.Join(strings.Fields(string(raw)), ""))
}
