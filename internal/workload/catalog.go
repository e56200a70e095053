package workload

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"memorymark/internal/hfconfig"
	"memorymark/internal/nearest"
)

// CatalogModel is a model of the catalog. Its configuration has the published keys that
// matter for memory; numbers that do not, such as the factors of longrope, need not
// be the published ones.
type CatalogModel struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Description   string `json:"description"`
	Type          string `json:"type"` // nlp or vision
	HuggingFaceID string `json:"huggingface_id,omitempty"`
	// Same are other models on the Hub that need the same memory, such as
	// chat-tuned ones.
	Same   []string         `json:"same,omitempty" doc:"other models of Hugging Face that take the same memory"`
	Config *hfconfig.Config `json:"config"`
}

//go:embed catalog.json
var catalog []byte

var loadCatalog = sync.OnceValue(func() []*CatalogModel {
	var file struct {
		Models []*CatalogModel `json:"models"`
	}
	if err := json.Unmarshal(catalog, &file); err != nil {
		panic(fmt.Sprintf("workload: catalog.json: %v", err)) // it is part of the program
	}
	return file.Models
})

// Models returns the catalog, in its order.
func Models() []*CatalogModel { return slices.Clone(loadCatalog()) }

// FindModel returns the model of an id, or of a Hugging Face id with or without
// its owner, in whatever case.
func FindModel(id string) (*CatalogModel, error) {
	for _, m := range loadCatalog() {
		if strings.EqualFold(m.ID, id) {
			return m, nil
		}
	}
	for _, m := range loadCatalog() {
		if slices.ContainsFunc(append([]string{m.HuggingFaceID}, m.Same...), func(name string) bool { return isCalled(name, id) }) {
			return m, nil
		}
	}
	return nil, fmt.Errorf("model %q is not in the catalog%s; give an id from the catalog or a path to a config.json", id, similar(id))
}

// isCalled reports whether an id refers to a model by its Hugging Face name.
func isCalled(name, id string) bool {
	return name != "" && (strings.EqualFold(name, id) || strings.EqualFold(withoutOwner(name), id))
}

// withoutOwner returns the part of a Hugging Face id after the last slash.
func withoutOwner(id string) string { return id[strings.LastIndex(id, "/")+1:] }

// similar returns ids of the catalog that resemble an unknown one.
func similar(id string) string {
	var ids []string
	for _, m := range loadCatalog() {
		ids = append(ids, m.ID)
	}
	near := nearest.To(withoutOwner(id), ids)
	if len(near) == 0 {
		return ""
	}
	return "; similar: " + strings.Join(near, ", ")
}
