package hfconfig

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"memorymark/internal/invalid"
)

// Names as transformers has them.
var (
	modelType    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	architecture = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,127})?$`)
)

// How deep configurations are within each other, and how long lists may be.
const (
	maxDepth = 8
	maxList  = 10_000
)

// CheckRunnable checks a configuration of which only PyTorch knows the keys:
// its names, and that building it has an end.
func (c *Config) CheckRunnable() error {
	switch {
	case !modelType.MatchString(c.ModelType):
		return fmt.Errorf("config: model_type is %.64q, which is not the name of a model type", c.ModelType)
	case !architecture.MatchString(c.Architecture):
		return fmt.Errorf("config: architecture is %.128q, which is not the name of a class", c.Architecture)
	}
	var wrong invalid.Error
	for key, raw := range c.keys {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return fmt.Errorf("config: %s: %w", key, err)
		}
		wrong.Add(checkValue(key, value, maxDepth))
	}
	return wrong.OrNil()
}

func checkValue(key string, value any, depth int) error {
	switch v := value.(type) {
	case float64:
		if isLayers(key) && key != "vision_feature_layers" && (v < 0 || v > maxLayers) { // which one, counted from the end
			return fmt.Errorf("config: %s is %v; it must be from 0 to %d", key, v, maxLayers)
		}
	case map[string]any:
		if depth == 0 || len(v) > maxList {
			return fmt.Errorf("config: %s is too deep or too long", key)
		}
		for name, within := range v {
			if err := checkValue(name, within, depth-1); err != nil {
				return err
			}
		}
	case []any:
		if depth == 0 || len(v) > maxList {
			return fmt.Errorf("config: %s is too deep or too long", key)
		}
		for _, within := range v {
			if err := checkValue(key, within, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Layers is how many layers the model has, about: the sum of all keys that count
// some.
func (c *Config) Layers() int64 {
	if c == nil {
		return 0
	}
	var n, layers int64
	for key := range c.keys {
		if isLayers(key) && c.Int(key, &layers) {
			n += max(layers, 0)
		}
	}
	return n
}

// isLayers reports whether a key counts layers, by the words that
// configurations have for it.
func isLayers(key string) bool {
	for _, word := range []string{"layers", "n_layer", "depth", "depths", "num_blocks"} {
		if key == word || strings.HasSuffix(key, "_"+word) {
			return true
		}
	}
	return false
}

// Within is the configuration under a key, an empty one if there is none.
func (c *Config) Within(key string) *Config {
	within := &Config{}
	if raw, ok := c.keys[key]; ok {
		_ = json.Unmarshal(raw, within) // what is no object has no keys
	}
	return within
}
