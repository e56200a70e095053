package engine_test

import (
	"slices"
	"strings"
	"testing"

	"memorymark/internal/models"
	"memorymark/internal/workload/workloadtest"
)

// The same for the heads that are not their families' first, one of a family in
// the short form.
func TestEnginesAgreeOnHeads(t *testing.T) {
	r := emulating(t)
	for family, keys := range small {
		w := workloadtest.Parse(t, `{`+keys+`, "batch": 4}`)
		f, first, err := models.Find(w.Config)
		if err != nil {
			t.Fatal(err)
		}
		if family == "resnet" { // see apart
			continue
		}
		tried := 0
		for _, head := range f.Heads {
			if head.Architecture == first.Architecture || unrouted(head.Architecture) {
				continue
			}
			tried++
			if testing.Short() && tried > 1 {
				break
			}
			t.Run(head.Architecture, func(t *testing.T) {
				named := strings.Replace(keys, `"config": {`, `"config": {"architectures": ["`+head.Architecture+`"], `, 1)
				agree(t, r, "h200", `{`+named+`, "batch": 4, "precision": "amp-bf16"}`)
			})
		}
	}
}

// unrouted says whether backward begins with the experts of a model. On an
// emulated card they get no tokens, since where those would go is unknown, and
// their products take no workspace; recordings of an H200 hold these models.
func unrouted(architecture string) bool {
	return slices.Contains([]string{"MixtralModel", "Qwen3MoeModel"}, architecture)
}
