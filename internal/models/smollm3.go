package models

import (
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var smolLM3Family = Family{Type: smolLM3, Versions: []Versions{newest, last4}, read: reads(readSmolLM3), Heads: decoderHeads("SmolLM3", newSmolLM3, allHeads...)}

// smolLM3Config is transformers' SmolLM3Config.
type smolLM3Config struct {
	llamaConfig
	RopeLayers   []int `json:"no_rope_layers"` // 1 where a layer rotates, else 0
	RopeInterval int64 `json:"no_rope_layer_interval"`
}

// readSmolLM3 reads a configuration, and completes it as __post_init__ does.
func readSmolLM3(c *hfconfig.Config) (*smolLM3Config, error) {
	groups := int64(4)
	l := &smolLM3Config{llamaConfig: llamaConfig{
		VocabSize: 128256, HiddenSize: 2048, IntermediateSize: 11008, Layers: 36, Heads: 16, KeyValueHeads: &groups, MaxPositions: 32768,
		HiddenAct: "silu", UseCache: true, NumLabels: 2, TieWordEmbeddings: true,
	}, RopeInterval: 4}
	if err := l.decode(c, l, "silu"); err != nil {
		return nil, err
	}
	switch n := int64(len(l.RopeLayers)); {
	case l.RopeLayers == nil:
		for i := range l.Layers {
			l.RopeLayers = append(l.RopeLayers, int(min(1, (i+1)%l.RopeInterval)))
		}
	case n < l.Layers:
		return nil, invalid.At("no_rope_layers", fmt.Errorf("config: no_rope_layers has %d entries; it needs one for each of the %d layers", n, l.Layers))
	}
	if l.LayerTypes == nil {
		for i := range l.Layers {
			kind := fullAttention
			if l.UseSlidingWindow && l.SlidingWindow != nil && l.RopeLayers[i] == 0 {
				kind = slidingAttention
			}
			l.LayerTypes = append(l.LayerTypes, kind)
		}
	}
	return l, nil
}

func (l *smolLM3Config) kindOf(layer int64) any {
	return [2]any{l.Sliding(layer), l.RopeLayers[layer]}
}

// newSmolLM3 makes SmolLM3Model: Llama, some of whose layers rotate nothing
// (transformers/models/smollm3/modeling_smollm3.py).
func newSmolLM3(t *torch.Torch, c *smolLM3Config, r Run) *llama {
	m := newLlama(t, &c.llamaConfig, r)
	m.rotate = func(t *torch.Torch, i int, q, k, cos, sin *torch.Var) {
		if c.RopeLayers[i] != 0 {
			applyRotary(t, q, k, cos, sin)
		}
	}
	return m
}
