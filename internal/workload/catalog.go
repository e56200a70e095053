package workload

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"memorymark/internal/hfconfig"
)

// Model is a model of the catalog.
type Model struct {
	ID            string           `json:"id"`
	Name          string           `json:"name"`
	Description   string           `json:"description"`
	Type          string           `json:"type"` // nlp or vision
	HuggingFaceID string           `json:"huggingface_id,omitempty"`
	Config        *hfconfig.Config `json:"config"`
}

//go:embed catalog.json
var catalog []byte

var loadCatalog = sync.OnceValue(func() []*Model {
	var file struct {
		Models []*Model `json:"models"`
	}
	if err := json.Unmarshal(catalog, &file); err != nil {
		panic(fmt.Sprintf("workload: catalog.json: %v", err)) // it is part of the program
	}
	return file.Models
})

// Models returns the catalog, in its order.
func Models() []*Model { return slices.Clone(loadCatalog()) }

// FindModel returns the model of an id, or of a Hugging Face id, in whatever
// case.
func FindModel(id string) (*Model, error) {
	for _, m := range loadCatalog() {
		if strings.EqualFold(m.ID, id) || m.HuggingFaceID != "" && strings.EqualFold(m.HuggingFaceID, id) {
			return m, nil
		}
	}
	var ids []string
	for _, m := range loadCatalog() {
		ids = append(ids, m.ID)
	}
	return nil, fmt.Errorf("model is %q; it must be an id from the catalog, such as %s, or a path to a config.json", id, strings.Join(ids, ", "))
}
