package torch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// inLoadingOrder returns the parameters in the order in which from_pretrained loads
// weights that it quantizes: one by one, by their names
// (transformers/core_model_loading.py, convert_and_load_state_dict_in_model; no
// threads where has_on_the_fly_quantization). Only the enclosing module of a norm is
// known; norms are small, so their order within it does not matter.
func (t *Torch) inLoadingOrder(owners []Owner) []*Tensor {
	modules := make(map[*Tensor]string, len(t.parameters))
	for i, p := range t.parameters {
		if i < len(owners) {
			modules[p] = owners[i].Module
		}
	}
	tables := make(map[*Tensor]bool, len(t.embeddings))
	for _, e := range t.embeddings {
		tables[e.Weight] = true
	}
	for _, m := range t.linears {
		if tables[m.Weight] { // tied to it
			continue
		}
		path := joinPath(modules[m.Weight], m.name)
		modules[m.Weight] = path
		if m.Bias != nil {
			modules[m.Bias] = path
		}
	}
	for _, e := range t.embeddings {
		if endsWith(e.name, sharedTable) {
			modules[e.Weight] = e.name
		}
	}
	keys := make(map[*Tensor][]namePart, len(t.parameters))
	for _, p := range t.parameters {
		keys[p] = naturalKey(modules[p] + "." + cmp.Or(p.name, "weight"))
	}
	out := slices.Clone(t.parameters)
	slices.SortStableFunc(out, func(a, b *Tensor) int { return slices.CompareFunc(keys[a], keys[b], namePart.compare) })
	return out
}

// sharedTable is the name of the embeddings that encoder and decoder share.
const sharedTable = "shared"

// joinPath returns the path of a layer from the module that reads it, or an
// enclosing one, and the end of its path, which may overlap.
func joinPath(module, name string) string {
	for rest := name; rest != ""; {
		if module == rest || strings.HasSuffix(module, "."+rest) {
			return module + strings.TrimPrefix(name, rest)
		}
		at := max(strings.LastIndexByte(rest, '.'), 0)
		rest = rest[:at]
	}
	if module == "" || name == "" {
		return module + name
	}
	return module + "." + name
}

// namePart is a part of a dotted name: a word, a number, or a word that ends in a
// number.
type namePart struct {
	word   string
	number int // -1 for none
}

// naturalKey is dot_natural_key.
func naturalKey(name string) []namePart {
	parts := strings.Split(name, ".")
	out := make([]namePart, len(parts))
	for i, part := range parts {
		word := strings.TrimRight(part, "0123456789")
		number, err := strconv.Atoi(part[len(word):])
		if err != nil {
			number = -1
		}
		out[i] = namePart{word, number}
	}
	return out
}

// compare puts numbers before words.
func (p namePart) compare(q namePart) int {
	return cmp.Or(strings.Compare(p.word, q.word), cmp.Compare(p.number, q.number))
}
