package workload

import (
	"errors"
	"fmt"
	"slices"
)

// ResNet is transformers' ResNetConfig.
type ResNet struct {
	Channels               int64   `json:"num_channels"`
	EmbeddingSize          int64   `json:"embedding_size"`
	HiddenSizes            []int64 `json:"hidden_sizes"`
	Depths                 []int64 `json:"depths"`
	LayerType              string  `json:"layer_type"` // basic or bottleneck
	HiddenAct              string  `json:"hidden_act"`
	DownsampleInFirstStage bool    `json:"downsample_in_first_stage"`
	DownsampleInBottleneck bool    `json:"downsample_in_bottleneck"`
	NumLabels              int64   `json:"num_labels"`
}

// ResNet reads a ResNet configuration.
func (c *Config) ResNet() (*ResNet, error) {
	r := &ResNet{
		Channels: 3, EmbeddingSize: 64, HiddenSizes: []int64{256, 512, 1024, 2048}, Depths: []int64{3, 4, 6, 3},
		LayerType: "bottleneck", HiddenAct: "relu", NumLabels: 2,
	}
	if err := c.decode(r, "out_features", "out_indices", "stage_names"); err != nil {
		return nil, err
	}
	return r, r.validate()
}

func (r *ResNet) validate() error {
	if err := errors.Join(positive("num_channels", r.Channels), positive("embedding_size", r.EmbeddingSize)); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	switch {
	case r.LayerType != "basic" && r.LayerType != "bottleneck":
		return fmt.Errorf("config: layer_type is %q; it must be basic or bottleneck", r.LayerType)
	case len(r.Depths) != len(r.HiddenSizes) || len(r.Depths) == 0:
		return fmt.Errorf("config: there are %d depths and %d hidden_sizes", len(r.Depths), len(r.HiddenSizes))
	case slices.Min(r.Depths) < 1 || slices.Min(r.HiddenSizes) < 4:
		return fmt.Errorf("config: depths must be at least 1 and hidden_sizes at least 4")
	case r.NumLabels < 2:
		return fmt.Errorf("config: num_labels %d of a resnet is not modelled", r.NumLabels)
	}
	return nil
}
