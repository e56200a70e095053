package models

import (
	"errors"
	"fmt"
	"slices"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var resnetFamily = Family{
	Type: "resnet", Images: true, ChannelsLast: true, read: reads(readResNet),
	Heads: []Head{
		head("ResNetForImageClassification", Classes, newResNet),
		head("ResNetModel", NoLabels, newResNetAlone),
	},
}

// resnetConfig is transformers' ResNetConfig.
type resnetConfig struct {
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

// readResNet reads a ResNet configuration.
func readResNet(c *hfconfig.Config) (*resnetConfig, error) {
	r := &resnetConfig{
		Channels: 3, EmbeddingSize: 64, HiddenSizes: []int64{256, 512, 1024, 2048}, Depths: []int64{3, 4, 6, 3},
		LayerType: "bottleneck", HiddenAct: "relu", NumLabels: 2,
	}
	if err := c.Decode(r, "out_features", "out_indices", "stage_names"); err != nil {
		return nil, err
	}
	return r, r.validate()
}

func (r *resnetConfig) validate() error {
	if err := errors.Join(invalid.Positive("num_channels", r.Channels), invalid.Positive("embedding_size", r.EmbeddingSize)); err != nil {
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

// convLayer is ResNetConvLayer, and ResNetShortCut, which has no activation.
type convLayer struct {
	convolution   *torch.Conv2d
	normalization *torch.BatchNorm2d
	activation    activation // nil for none
}

// resnetLayer is ResNetBasicLayer or ResNetBottleNeckLayer: they differ in
// their convolutions alone. Between those is a ReLU, whatever hidden_act says.
type resnetLayer struct {
	shortcut *convLayer // nil for nn.Identity
	layers   []*convLayer
}

// resnet is ResNetModel, and ResNetForImageClassification with a classifier
// (transformers/models/resnet/modeling_resnet.py).
type resnet struct {
	cfg        *resnetConfig
	train      bool
	act        activation
	embedder   *convLayer
	stages     [][]*resnetLayer
	classifier *torch.Linear
	name       string // what the head calls the model, "" without one
}

// resnetMaker makes modules in the order of their constructors.
type resnetMaker struct {
	t     *torch.Torch
	cfg   *resnetConfig
	dtype torch.DType
}

// newResNetModel makes ResNetModel.
func newResNetModel(t *torch.Torch, c *resnetConfig, r Run) (*resnet, error) {
	if r.Checkpointing {
		return nil, errors.New("checkpointing: transformers' ResNet does not support it")
	}
	act, err := activationOf(c.HiddenAct)
	if err != nil {
		return nil, err
	}
	mk := &resnetMaker{t, c, r.DType}
	m := &resnet{cfg: c, train: r.Train, act: act}
	m.embedder = mk.conv(c.Channels, c.EmbeddingSize, 7, 2, act)
	in := c.EmbeddingSize
	for i, out := range c.HiddenSizes {
		stride := int64(2)
		if i == 0 && !c.DownsampleInFirstStage {
			stride = 1
		}
		stage := []*resnetLayer{mk.layer(in, out, stride, c.DownsampleInBottleneck)}
		for range c.Depths[i] - 1 {
			stage = append(stage, mk.layer(out, out, 1, false))
		}
		m.stages = append(m.stages, stage)
		in = out
	}
	return m, nil
}

func newResNet(t *torch.Torch, c *resnetConfig, r Run) (*Model, error) {
	m, err := newResNetModel(t, c, r)
	if err != nil {
		return nil, err
	}
	m.name = "resnet"
	m.classifier = t.NewLinear(c.HiddenSizes[len(c.HiddenSizes)-1], c.NumLabels, true, r.DType).Named("classifier.1")
	return &Model{Forward: m.forward}, nil
}

func newResNetAlone(t *torch.Torch, c *resnetConfig, r Run) (*Model, error) {
	m, err := newResNetModel(t, c, r)
	if err != nil {
		return nil, err
	}
	return bare(m.encode), nil
}

func (mk *resnetMaker) conv(in, out, kernel, stride int64, act activation) *convLayer {
	return &convLayer{
		convolution:   mk.t.NewConv2d(in, out, kernel, stride, kernel/2, false, mk.dtype),
		normalization: mk.t.NewBatchNorm2d(out, mk.dtype),
		activation:    act,
	}
}

func (mk *resnetMaker) layer(in, out, stride int64, early bool) *resnetLayer {
	l := &resnetLayer{}
	relu := activations["relu"]
	if in != out || stride != 1 {
		l.shortcut = mk.conv(in, out, 1, stride, nil)
	}
	if mk.cfg.LayerType == "basic" {
		l.layers = []*convLayer{mk.conv(in, out, 3, stride, relu), mk.conv(out, out, 3, 1, nil)}
		return l
	}
	first, second := int64(1), stride // downsample in the second convolution,
	if early {
		first, second = stride, 1 // or in the first
	}
	narrow := out / 4
	l.layers = []*convLayer{
		mk.conv(in, narrow, 1, first, relu), mk.conv(narrow, narrow, 3, second, relu), mk.conv(narrow, out, 1, 1, nil),
	}
	return l
}

func (m *resnet) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	o := m.encode(t, batch)
	f.Let(o.hidden) // the output object keeps both
	pooled := f.Let(o.pooled)
	scores := t.In("classifier", func() torch.Value { return t.Linear(t.Flatten(pooled, 1), m.classifier) })
	return classified(t, f, scores, batch)
}

// encode is ResNetModel.forward.
func (m *resnet) encode(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	embedded := f.Let(m.embed(t, batch.Pixels))
	hidden := f.Let(embedded)
	for i := range m.stages {
		hidden.Set(m.stage(t, i, hidden))
	}
	pooled := f.Let(t.GlobalAvgPool2d(hidden))
	out := trunkOutput{hidden: f.Keep(hidden), pooled: f.Keep(pooled)}
	f.End()
	return out
}

// embed is ResNetEmbeddings.
func (m *resnet) embed(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("embedder")
	embedding := f.Let(m.conv(t, m.embedder, torch.Borrow(pixels)))
	embedding.Set(t.MaxPool2d(embedding, 3, 2, 1))
	return f.Return(embedding)
}

func (m *resnet) stage(t *torch.Torch, i int, input *torch.Var) torch.Value {
	f := t.Enter(input).In("encoder.stages", i)
	hidden := f.Let(input)
	for j := range m.stages[i] {
		hidden.Set(m.layer(t, m.stages[i][j], j, hidden))
	}
	return f.Return(hidden)
}

func (m *resnet) layer(t *torch.Torch, l *resnetLayer, i int, input *torch.Var) torch.Value {
	f := t.Enter(input).In("layers", i)
	hidden := f.Let(input)
	residual := f.Let(hidden)
	hidden.Set(m.sequence(t, l.layers, hidden))
	if l.shortcut != nil {
		residual.Set(t.In("shortcut", func() torch.Value { return m.conv(t, l.shortcut, residual) }))
	}
	t.AddInPlace(hidden, residual)
	hidden.Set(m.act(t, hidden))
	return f.Return(hidden)
}

// sequence is nn.Sequential.
func (m *resnet) sequence(t *torch.Torch, layers []*convLayer, input *torch.Var) torch.Value {
	f := t.Enter(input)
	x := f.Let(input)
	for _, l := range layers {
		x.Set(m.conv(t, l, x))
	}
	return f.Return(x)
}

func (m *resnet) conv(t *torch.Torch, l *convLayer, input torch.X) torch.Value {
	f := t.Enter(input)
	hidden := f.Let(t.Conv2d(input, l.convolution))
	hidden.Set(t.BatchNorm(hidden, l.normalization, m.train))
	if l.activation != nil {
		hidden.Set(l.activation(t, hidden))
	}
	return f.Return(hidden)
}
