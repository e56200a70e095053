package models

import (
	"slices"

	"memorymark/internal/hfconfig"
)

// layered is a configuration of a model whose layers are called one after the other.
type layered interface {
	depth() (layers int64, key string)
	// kindOf tells layers apart that do different things; nil where all do the same.
	kindOf(layer int64) any
}

// leastLayers is how many layers a shallow model has at least: the first one, the last
// one and those next to them have neighbours that others do not have, as where FSDP
// gathers the next layer ahead.
const leastLayers = 4

// Shallow returns two configurations of a model with fewer layers. The second has one
// period of layers more than the first, and the model itself has as many periods more.
// It reports false if the layers do not repeat, or if there are too few for that.
func Shallow(c *hfconfig.Config) (first, second *hfconfig.Config, periods int64, ok bool) {
	f := familyOf(c)
	if f == nil {
		return nil, nil, 0, false
	}
	config, err := f.read(c)
	if err != nil {
		return nil, nil, 0, false
	}
	model, ok := config.(layered)
	if !ok {
		return nil, nil, 0, false
	}
	layers, key := model.depth()
	period := periodOf(model, layers)
	few := layers % period
	for few < max(leastLayers, period) { // with layers of every kind
		few += period
	}
	if 2*few+period > layers*3/4 {
		return nil, nil, 0, false
	}
	return c.WithInt(key, few), c.WithInt(key, few+period), (layers - few) / period, true
}

// periodOf is after how many layers their kinds repeat.
func periodOf(model layered, layers int64) int64 {
	kinds := make([]any, layers)
	for i := range kinds {
		kinds[i] = model.kindOf(int64(i))
	}
	for period := 1; period < len(kinds); period++ {
		if slices.Equal(kinds[period:], kinds[:len(kinds)-period]) {
			return int64(period)
		}
	}
	return max(layers, 1)
}
