package models_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"memorymark/internal/hfconfig"
	"memorymark/internal/models"
	_ "memorymark/internal/workload" // which knows the source of others
)

// TestShallow looks at how many layers are left of models whose layers repeat.
func TestShallow(t *testing.T) {
	for _, test := range []struct {
		config        string
		first, second int64
		periods       int64
	}{
		{`{"model_type": "llama", "num_hidden_layers": 32}`, 4, 5, 28},
		{`{"model_type": "gemma2", "num_hidden_layers": 42}`, 4, 6, 19},
		{`{"model_type": "gemma3_text", "num_hidden_layers": 62}`, 8, 14, 9},
		{`{"model_type": "gpt2", "num_hidden_layers": 48}`, 4, 5, 44}, // by another name
		{`{"model_type": "qwen3", "num_hidden_layers": 36, "use_sliding_window": true, "max_window_layers": 18}`, 0, 0, 0},
		{`{"model_type": "llama", "num_hidden_layers": 8}`, 0, 0, 0}, // too few
		{`{"model_type": "llama", "num_hidden_layers": 0}`, 0, 0, 0},
		{`{"model_type": "resnet"}`, 0, 0, 0},
		{`{"model_type": "unknown"}`, 0, 0, 0},
	} {
		var c hfconfig.Config
		if err := json.Unmarshal([]byte(test.config), &c); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(test.config, "gemma") && !models.HasSource() {
			continue // models are evaluated from their source alone
		}
		_ = models.Settle(&c) // one of them is unknown
		first, second, periods, ok := models.Shallow(&c)
		if ok != (test.first > 0) {
			t.Errorf("%s: %v", test.config, ok)
		}
		if !ok {
			continue
		}
		if a, b := layersOf(t, first), layersOf(t, second); a != test.first || b != test.second || periods != test.periods {
			t.Errorf("%s: %d and %d layers, %d periods", test.config, a, b, periods)
		}
	}
}

func layersOf(t *testing.T, c *hfconfig.Config) int64 {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var layers struct {
		Layers int64 `json:"num_hidden_layers"`
		Own    int64 `json:"n_layer"`
	}
	if err := json.Unmarshal(data, &layers); err != nil {
		t.Fatal(err)
	}
	return cmp.Or(layers.Own, layers.Layers)
}
