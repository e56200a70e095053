package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// families are the model types that are known: the architecture that a
// configuration without one means, and how its keys are read.
var families = map[string]struct {
	architecture string
	read         func(*Config) error
}{
	"bert":       {"BertForSequenceClassification", reads((*Config).Bert)},
	"distilbert": {"DistilBertForSequenceClassification", reads((*Config).DistilBert)},
	"gpt2":       {"GPT2LMHeadModel", reads((*Config).GPT2)},
	"llama":      {"LlamaForCausalLM", reads((*Config).Llama)},
	"lm":         {"TransformerLM", reads((*Config).LM)},
	"mistral":    {"MistralForCausalLM", reads((*Config).Llama)},
	"qwen2":      {"Qwen2ForCausalLM", reads((*Config).Llama)},
	"qwen3":      {"Qwen3ForCausalLM", reads((*Config).Llama)},
	"resnet":     {"ResNetForImageClassification", reads((*Config).ResNet)},
	"roberta":    {"RobertaForMaskedLM", reads((*Config).Roberta)},
	"t5":         {"T5ForConditionalGeneration", reads((*Config).T5)},
	"vit":        {"ViTForImageClassification", reads((*Config).ViT)},
}

// reads is a family's reader without its result.
func reads[T any](read func(*Config) (*T, error)) func(*Config) error {
	return func(c *Config) error {
		_, err := read(c)
		return err
	}
}

// with returns the configuration with some keys replaced.
func (c *Config) with(own *Config) *Config {
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

// settle makes sure that there is a model type and an architecture: each says
// what the other is.
func (c *Config) settle() error {
	if c.ModelType == "" {
		for name, f := range families {
			if f.architecture == c.Architecture || strings.HasPrefix(strings.ToLower(c.Architecture), name+"for") {
				c.ModelType = name
			}
		}
	}
	known := strings.Join(slices.Sorted(maps.Keys(families)), ", ")
	switch f, ok := families[c.ModelType]; {
	case c.ModelType == "" && c.Architecture == "":
		return fmt.Errorf("config has no model_type; it must be one of %s", known)
	case c.ModelType == "":
		return fmt.Errorf("config: architecture %q is not modelled; its model_type must be one of %s", c.Architecture, known)
	case !ok:
		return fmt.Errorf("config: model_type %q is not modelled; it must be one of %s", c.ModelType, known)
	case c.Architecture == "":
		c.Architecture = f.architecture
	}
	return nil
}

// checkFamily reads the keys as the family does and reports what is wrong.
func (c *Config) checkFamily() error {
	if f, ok := families[c.ModelType]; ok {
		return f.read(c)
	}
	return nil
}

// positionTables are the families with a learned embedding for each position:
// the key that says how many there are, the default, and how many are not for
// tokens.
var positionTables = map[string]struct {
	keys     []string
	fallback int64
	reserved int64
}{
	"bert":       {[]string{"max_position_embeddings"}, 512, 0},
	"distilbert": {[]string{"max_position_embeddings"}, 512, 0},
	"roberta":    {[]string{"max_position_embeddings"}, 512, 2}, // positions count from padding_idx + 1
	"gpt2":       {[]string{"n_positions", "max_position_embeddings"}, 1024, 0},
}

// checkSequence reports a sequence that is longer than the position table.
func (c *Config) checkSequence(sequence int64) error {
	table, ok := positionTables[c.ModelType]
	if !ok {
		return nil
	}
	key, positions := table.keys[0], table.fallback
	for _, k := range table.keys {
		if c.readInt(k, &positions) {
			key = k
		}
	}
	if most := positions - table.reserved; sequence > most && most > 0 {
		return at("sequence", fmt.Errorf("sequence is %d; it must be at most %d, what %s leaves", sequence, most, key))
	}
	return nil
}

// readInt reads a key that holds a whole number, if there is one.
func (c *Config) readInt(key string, into *int64) bool {
	var n int64
	if raw, ok := c.keys[key]; !ok || json.Unmarshal(raw, &n) != nil {
		return false
	}
	*into = n
	return true
}

// The bounds of a configuration, far beyond every model: products of sizes
// must stay within 64 bits, and layers are walked one by one.
const (
	maxSize   = 1 << 27
	maxLayers = 1000
)

// mayBeZero are sizes of which there may be none.
var mayBeZero = []string{"chunk_size_feed_forward", "type_vocab_size", "max_window_layers", "num_decoder_layers", "sliding_window"}

// layerKeys are the numbers of layers, divisions what must divide what.
var (
	layerKeys = []string{"num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"}
	divisions = [][2]string{
		{"hidden_size", "num_attention_heads"},
		{"n_embd", "n_head"},
		{"dim", "n_heads"},
		{"num_attention_heads", "num_key_value_heads"},
		{"d_model", "num_heads"},
	}
)

// checkSizes checks the numbers of a configuration that has been read.
func checkSizes(fields map[string]any, wrong *InvalidError) {
	sizes := make(map[string]int64)
	for key, field := range fields {
		switch v := field.(type) {
		case *int64:
			sizes[key] = *v
		case **int64:
			if *v != nil {
				sizes[key] = **v
			}
		case *[]int64:
			for _, n := range (*v)[:min(len(*v), maxLayers+1)] {
				sizes[key] += n // of depths the sum counts, and other lists are short
				if n < 1 {
					wrong.add(at(key, fmt.Errorf("config: %s holds %d; it must be at least 1", key, n)))
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		least, most := int64(1), int64(maxSize)
		if slices.Contains(mayBeZero, key) {
			least = 0
		}
		if slices.Contains(layerKeys, key) || key == "depths" {
			most = maxLayers
		}
		if err := within(key, sizes[key], least, most); err != nil {
			wrong.add(at(key, fmt.Errorf("config: %w", err)))
		}
	}
	if len(wrong.Problems) == 0 {
		wrong.add(checkDivisions(sizes))
	}
}

// headSizes are the keys that give heads a size of their own.
var headSizes = map[string]string{"hidden_size": "head_dim", "d_model": "d_kv"}

// checkDivisions reports heads that do not divide what is split between them.
func checkDivisions(sizes map[string]int64) error {
	var all []error
	for _, d := range divisions {
		whole, ok1 := sizes[d[0]]
		parts, ok2 := sizes[d[1]]
		if own := headSizes[d[0]]; own != "" && sizes[own] > 0 {
			continue // the heads have a size of their own
		}
		if ok1 && ok2 && whole%parts != 0 {
			all = append(all, fmt.Errorf("config: %s is %d, which %s, %d, does not divide", d[0], whole, d[1], parts))
		}
	}
	return errors.Join(all...)
}

// TakesImages reports whether a batch is images, not tokens.
func (c *Config) TakesImages() bool { return c.ModelType == "resnet" || c.ModelType == "vit" }
