package workload

import (
	"errors"
	"fmt"
)

// ViT is transformers' ViTConfig.
type ViT struct {
	HiddenSize       int64   `json:"hidden_size"`
	Layers           int64   `json:"num_hidden_layers"`
	Heads            int64   `json:"num_attention_heads"`
	IntermediateSize int64   `json:"intermediate_size"`
	HiddenAct        string  `json:"hidden_act"`
	HiddenDropout    float64 `json:"hidden_dropout_prob"`
	AttentionDropout float64 `json:"attention_probs_dropout_prob"`
	ImageSize        int64   `json:"image_size"`
	PatchSize        int64   `json:"patch_size"`
	Channels         int64   `json:"num_channels"`
	QKVBias          bool    `json:"qkv_bias"`
	NumLabels        int64   `json:"num_labels"`
}

// ViT reads a ViT configuration.
func (c *Config) ViT() (*ViT, error) {
	v := &ViT{
		HiddenSize: 768, Layers: 12, Heads: 12, IntermediateSize: 3072, HiddenAct: "gelu",
		ImageSize: 224, PatchSize: 16, Channels: 3, QKVBias: true, NumLabels: 2,
	}
	if err := c.decode(v, "layer_norm_eps", "encoder_stride", "pooler_output_size", "pooler_act"); err != nil {
		return nil, err
	}
	return v, v.validate()
}

func (v *ViT) validate() error {
	if err := errors.Join(
		positive("hidden_size", v.HiddenSize), positive("num_attention_heads", v.Heads),
		positive("intermediate_size", v.IntermediateSize), positive("patch_size", v.PatchSize), positive("num_channels", v.Channels),
	); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	switch {
	case v.HiddenSize%v.Heads != 0:
		return fmt.Errorf("config: hidden_size is %d, which num_attention_heads, %d, does not divide", v.HiddenSize, v.Heads)
	case v.PatchSize > v.ImageSize:
		return fmt.Errorf("config: patch_size is %d, image_size %d", v.PatchSize, v.ImageSize)
	case v.NumLabels < 2:
		return fmt.Errorf("config: num_labels %d of a vit is not modelled", v.NumLabels)
	}
	return nil
}
