package workload

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"memorymark/internal/hfconfig"
	"memorymark/internal/nearest"
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

// FindModel returns the model of an id, or of a Hugging Face id with or without
// its organisation, in whatever case. The error for an unknown one names those
// that are near.
func FindModel(id string) (*Model, error) {
	for _, m := range loadCatalog() {
		if slices.ContainsFunc(m.names(), func(name string) bool { return strings.EqualFold(name, id) }) {
			return m, nil
		}
	}
	const otherwise = "an id of the catalog, or a path to a config.json"
	if near := nearModels(id); len(near) > 0 {
		return nil, fmt.Errorf("model is %q; did you mean %s? It must be %s", id, strings.Join(near, ", "), otherwise)
	}
	return nil, fmt.Errorf("model is %q; it must be %s", id, otherwise)
}

// SearchModels returns the models that have a text in their id, their name or
// their Hugging Face id.
func SearchModels(text string) []*Model {
	return slices.DeleteFunc(Models(), func(m *Model) bool {
		return !slices.ContainsFunc(append(m.names(), m.Name), func(name string) bool {
			return strings.Contains(strings.ToLower(name), strings.ToLower(text))
		})
	})
}

// names are what a model goes by.
func (m *Model) names() []string {
	if m.HuggingFaceID == "" {
		return []string{m.ID}
	}
	return []string{m.ID, m.HuggingFaceID, path.Base(m.HuggingFaceID)}
}

// nearModels are the ids of models that a name is near to.
func nearModels(name string) []string {
	ids := make(map[string]string)
	var known, out []string
	for _, m := range loadCatalog() {
		for _, n := range m.names() {
			ids[n] = m.ID
			known = append(known, n)
		}
	}
	for _, n := range nearest.To(name, known) {
		if !slices.Contains(out, ids[n]) {
			out = append(out, ids[n])
		}
	}
	return out
}
