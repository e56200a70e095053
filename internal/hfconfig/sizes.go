package hfconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"memorymark/internal/invalid"
)

// The bounds of a configuration, far beyond every model: products of sizes
// must stay within 64 bits, and layers are walked one by one.
const (
	maxSize   = 1 << 27
	maxLayers = 1000
)

// mayBeZero are sizes of which there may be none.
var mayBeZero = []string{"chunk_size_feed_forward", "type_vocab_size", "max_window_layers", "first_k_dense_replace", "num_decoder_layers", "sliding_window"}

// layerKeys are the numbers of layers, divisions what must divide what.
var (
	layerKeys = []string{"num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers"}
	divisions = [][2]string{
		{"hidden_size", "num_attention_heads"},
		{"n_embd", "n_head"},
		{"dim", "n_heads"},
		{"num_attention_heads", "num_key_value_heads"},
		{"d_model", "num_heads"},
		{"d_model", "encoder_attention_heads"},
		{"d_model", "decoder_attention_heads"},
	}
)

// checkSizes checks the numbers of a configuration that has been read.
func checkSizes(fields map[string]any, wrong *invalid.Error) {
	sizes := make(map[string]int64)
	for key, field := range fields {
		switch v := field.(type) {
		case *int64:
			sizes[key] = *v
		case **int64:
			if *v != nil {
				sizes[key] = **v
			}
		case *[]int64:
			for _, n := range (*v)[:min(len(*v), maxLayers+1)] {
				sizes[key] += n // of depths the sum counts, and other lists are short
				if n < 1 {
					wrong.Add(invalid.At(key, fmt.Errorf("config: %s contains %d; every number must be at least 1", key, n)))
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		least, most := int64(1), int64(maxSize)
		if slices.Contains(mayBeZero, key) {
			least = 0
		}
		if slices.Contains(layerKeys, key) || key == "depths" {
			most = maxLayers
		}
		if err := invalid.Within(key, sizes[key], least, most); err != nil {
			wrong.Add(invalid.At(key, fmt.Errorf("config: %w", err)))
		}
	}
	if len(wrong.Problems) == 0 {
		wrong.Add(checkDivisions(sizes))
	}
}

// headSizes are the keys that give heads a size of their own.
var headSizes = map[string]string{"hidden_size": "head_dim", "d_model": "d_kv"}

// checkDivisions reports heads that do not divide what is split between them.
func checkDivisions(sizes map[string]int64) error {
	var all []error
	for _, d := range divisions {
		whole, ok1 := sizes[d[0]]
		parts, ok2 := sizes[d[1]]
		if own := headSizes[d[0]]; own != "" && sizes[own] > 0 {
			continue // the heads have a size of their own
		}
		if ok1 && ok2 && whole%parts != 0 {
			all = append(all, fmt.Errorf("config: %s is %d, which is not divisible by %s, %d", d[0], whole, d[1], parts))
		}
	}
	return errors.Join(all...)
}
