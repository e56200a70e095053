package study

import (
	"fmt"
	"strings"
)

// Sizes are the plain language models by the names people give them.
var Sizes = []string{"small", "medium", "large", "xl", "2.7B"}

// ModelOf returns the catalog's id of a size.
func ModelOf(size string) (string, error) {
	for _, s := range Sizes {
		if strings.EqualFold(s, size) {
			return "lm-" + strings.ToLower(s), nil
		}
	}
	return "", fmt.Errorf("model-size is %q; it must be one of %s", size, strings.Join(Sizes, ", "))
}

// SizeOf is the name of a model's size, or the model's id if it has none.
func SizeOf(model string) string {
	for _, s := range Sizes {
		if "lm-"+strings.ToLower(s) == model {
			return s
		}
	}
	return model
}
