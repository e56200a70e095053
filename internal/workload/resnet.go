package workload

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
	return r, c.decode(r, "out_features", "out_indices", "stage_names")
}
