package trace

import (
	"strconv"
	"strings"
)

// Layer finds the first layer in the path of a module: 3 of the list
// "transformer.h" for "transformer.h.3.attn".
func Layer(module string) (list string, number int, ok bool) {
	parts := strings.Split(module, ".")
	for i, p := range parts {
		if n, err := strconv.Atoi(p); err == nil && i > 0 {
			return strings.Join(parts[:i], "."), n, true
		}
	}
	return "", 0, false
}

// AnyLayer replaces the number of each layer in the path of a module by a star:
// layers of one list do the same.
func AnyLayer(module string) string {
	parts := strings.Split(module, ".")
	for i, p := range parts {
		if _, err := strconv.Atoi(p); err == nil {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}
