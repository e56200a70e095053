package models

import (
	"encoding/json"
	"testing"

	"memorymark/internal/hfconfig"
)

func configOf(t *testing.T, text string) *hfconfig.Config {
	t.Helper()
	var c hfconfig.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if err := Settle(&c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// A published config.json has no num_labels, only the names of the classes,
// and switches that are off.
func TestPublishedConfig(t *testing.T) {
	v, err := readViT(configOf(t, `{"architectures":["ViTForImageClassification"],"model_type":"vit","is_decoder":false,
		"id2label":{"0":"a","1":"b","2":"c"},"label2id":{"a":0,"b":1,"c":2},"pruned_heads":{}}`))
	if err != nil || v.NumLabels != 3 {
		t.Errorf("%+v, %v", v, err)
	}
	if err := Check(configOf(t, `{"model_type":"bert","is_decoder":true}`), 1); err == nil {
		t.Error("a BERT that decodes was taken")
	}
}

// Families are known by one name, and heads by one family.
func TestFamilies(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range families {
		names := []string{f.Type}
		for _, h := range f.Heads {
			names = append(names, h.Architecture)
			if c := configOf(t, `{"architectures":["`+h.Architecture+`"]}`); c.ModelType != f.Type {
				t.Errorf("%s is taken for a %s", h.Architecture, c.ModelType)
			}
		}
		for _, name := range names {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
	}
}
