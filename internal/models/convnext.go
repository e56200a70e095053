package models

import (
	"errors"
	"fmt"
	"slices"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var convNextFamily = Family{
	Type: "convnext", Images: true, AnyImage: true, ChannelsLast: true, read: reads(readConvNext),
	Heads: []Head{
		takesNoKeywords(head("ConvNextForImageClassification", Classes, newConvNext)),
		head("ConvNextModel", NoLabels, newConvNextAlone),
	},
}

var convNextV2Family = Family{
	Type: convNextV2, Images: true, AnyImage: true, ChannelsLast: true, read: reads(readConvNext),
	Heads: []Head{
		takesNoKeywords(head("ConvNextV2ForImageClassification", Classes, newConvNext)),
		head("ConvNextV2Model", NoLabels, newConvNextAlone),
	},
}

const convNextV2 = "convnextv2"

// convNextConfig is transformers' ConvNextConfig, or ConvNextV2Config.
type convNextConfig struct {
	Channels    int64   `json:"num_channels"`
	PatchSize   int64   `json:"patch_size"`
	Stages      int64   `json:"num_stages"`
	HiddenSizes []int64 `json:"hidden_sizes"`
	Depths      []int64 `json:"depths"`
	HiddenAct   string  `json:"hidden_act"`
	LayerScale  float64 `json:"layer_scale_init_value"`
	DropPath    float64 `json:"drop_path_rate"`
	NumLabels   int64   `json:"num_labels"`

	second bool // of ConvNeXt V2
}

// readConvNext reads a ConvNeXt configuration.
func readConvNext(c *hfconfig.Config) (*convNextConfig, error) {
	n := &convNextConfig{
		Channels: 3, PatchSize: 4, Stages: 4, HiddenSizes: []int64{96, 192, 384, 768}, Depths: []int64{3, 3, 9, 3},
		HiddenAct: "gelu", LayerScale: 1e-6, NumLabels: 2, second: c.ModelType == convNextV2,
	}
	if err := c.Decode(n, "layer_norm_eps", "image_size", "out_features", "out_indices", "stage_names"); err != nil {
		return nil, err
	}
	if n.second {
		n.LayerScale = 0 // published configurations have it, and ConvNeXt V2 does not read it
	}
	return n, n.validate()
}

func (c *convNextConfig) validate() error {
	if err := errors.Join(invalid.Positive("num_channels", c.Channels), invalid.Positive("patch_size", c.PatchSize)); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	stages := int64(len(c.Depths))
	switch {
	case stages == 0 || stages != int64(len(c.HiddenSizes)) || stages != c.Stages:
		return fmt.Errorf("config: there are %d depths, %d hidden_sizes and num_stages is %d", stages, len(c.HiddenSizes), c.Stages)
	case slices.Min(c.Depths) < 1 || slices.Min(c.HiddenSizes) < 1:
		return errors.New("config: depths and hidden_sizes must be at least 1")
	}
	return checkEncoder(c.NumLabels, 0, c.DropPath)
}

type convNextLayer struct {
	dwconv   *torch.Conv2d
	norm     *torch.LayerNorm
	pwconv1  *torch.Linear
	response *responseNorm // of ConvNeXt V2, else nil
	pwconv2  *torch.Linear
	scale    *torch.Tensor // layer_scale_parameter, nil without
	dropPath float64
}

type convNextStage struct {
	norm   *torch.LayerNorm // of downsampling_layer, nil without
	conv   *torch.Conv2d
	layers []convNextLayer
}

// convNext is ConvNextModel, and ConvNextForImageClassification with a classifier
// (transformers/models/convnext/modeling_convnext.py), or those of ConvNeXt V2
// (transformers/models/convnextv2/modeling_convnextv2.py). Its images are in
// channels_last from the first norm on, whatever channels_last says: a norm makes
// them so, and convolutions keep it.
type convNext struct {
	run        Run
	act        activation
	patches    *torch.Conv2d
	embedNorm  *torch.LayerNorm
	stages     []convNextStage
	norm       *torch.LayerNorm
	classifier *torch.Linear
	name       string // what the head calls the model, "" without one
}

// newConvNextModel makes ConvNextModel, parameters in the order of its
// constructors.
func newConvNextModel(t *torch.Torch, c *convNextConfig, r Run) (*convNext, error) {
	if r.Checkpointing {
		return nil, errors.New("checkpointing: transformers' ConvNeXt does not support it")
	}
	act, err := activationOf(c.HiddenAct)
	if err != nil {
		return nil, err
	}
	in := c.HiddenSizes[0]
	m := &convNext{run: r, act: act, patches: t.NewConv2d(c.Channels, in, c.PatchSize, c.PatchSize, 0, true, r.DType)}
	m.embedNorm = t.NewLayerNorm(in, r.DType)
	count, made := int64(0), int64(0)
	for _, depth := range c.Depths {
		count += depth
	}
	for i, depth := range c.Depths {
		out, stage := c.HiddenSizes[i], convNextStage{}
		if i > 0 || in != out {
			stage.norm, stage.conv = t.NewLayerNorm(in, r.DType), t.NewConv2d(in, out, 2, min(int64(i)+1, 2), 0, true, r.DType)
		}
		for range depth {
			l := m.newLayer(t, c, out)
			l.dropPath = c.DropPath * float64(made) / float64(max(count-1, 1))
			stage.layers = append(stage.layers, l)
			made++
		}
		m.stages = append(m.stages, stage)
		in = out
	}
	m.norm = t.NewLayerNorm(in, r.DType)
	return m, nil
}

func (m *convNext) newLayer(t *torch.Torch, c *convNextConfig, width int64) convNextLayer {
	dtype := m.run.DType
	l := convNextLayer{
		dwconv: t.NewDepthwiseConv2d(width, 7, 3, dtype), norm: t.NewLayerNorm(width, dtype),
		pwconv1: t.NewLinear(width, 4*width, true, dtype).Named("pwconv1"),
	}
	if c.second {
		l.response = newResponseNorm(t, 4*width, dtype)
	}
	l.pwconv2 = t.NewLinear(4*width, width, true, dtype).Named("pwconv2")
	if c.LayerScale > 0 { // layer_scale_init_value * torch.ones(dim)
		ones := t.Full(dtype, width)
		l.scale = t.Parameter(dtype, width).Named("layer_scale_parameter").OddDecay()
		t.Drop(ones)
		t.ListBefore(l.scale, l.dwconv.Weight)
		t.OwnAfterParts(l.scale)
	}
	return l
}

func newConvNext(t *torch.Torch, c *convNextConfig, r Run) (*Model, error) {
	m, err := newConvNextModel(t, c, r)
	if err != nil {
		return nil, err
	}
	if m.name = "convnext"; c.second {
		m.name = convNextV2
	}
	m.classifier = t.NewLinear(c.HiddenSizes[len(c.HiddenSizes)-1], c.NumLabels, true, r.DType).Named("classifier")
	return &Model{Forward: m.forward}, nil
}

func newConvNextAlone(t *torch.Torch, c *convNextConfig, r Run) (*Model, error) {
	m, err := newConvNextModel(t, c, r)
	if err != nil {
		return nil, err
	}
	return bare(m.encode), nil
}

func (m *convNext) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	o := m.encode(t, batch)
	f.Let(o.hidden) // the output object keeps both
	pooled := f.Let(o.pooled)
	scores := t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) })
	return classified(t, f, scores, batch)
}

// encode is ConvNextModel.forward.
func (m *convNext) encode(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	embedded := f.Let(m.embed(t, batch.Pixels))
	hidden := f.Let(embedded)
	for i := range m.stages {
		hidden.Set(m.stage(t, i, hidden))
	}
	pooled := f.Let(t.In("layernorm", func() torch.Value { return t.LayerNorm(t.MeanOfImages(hidden), m.norm) }))
	out := trunkOutput{hidden: f.Keep(hidden), pooled: f.Keep(pooled)}
	f.End()
	return out
}

// embed is ConvNextEmbeddings.
func (m *convNext) embed(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("embeddings")
	embeddings := f.Let(t.Conv2d(torch.Borrow(pixels), m.patches))
	embeddings.Set(m.normed(t, embeddings, m.embedNorm))
	return f.Return(embeddings)
}

// normed is ConvNextLayerNorm of channels that come first.
func (m *convNext) normed(t *torch.Torch, input *torch.Var, norm *torch.LayerNorm) torch.Value {
	f := t.Enter(input)
	features := f.Let(t.Permute(input, 0, 2, 3, 1))
	features.Set(t.LayerNorm(features, norm))
	features.Set(t.Permute(features, 0, 3, 1, 2))
	return f.Return(features)
}

func (m *convNext) stage(t *torch.Torch, i int, input *torch.Var) torch.Value {
	f, s := t.Enter(input).In("encoder.stages", i), &m.stages[i]
	features := f.Let(input)
	if s.conv != nil {
		features.Set(m.normed(t, features, s.norm))
		features.Set(t.In("downsampling_layer", func() torch.Value { return t.Conv2d(features, s.conv) }))
	}
	for j := range s.layers {
		features.Set(m.layer(t, &s.layers[j], j, features))
	}
	return f.Return(features)
}

func (m *convNext) layer(t *torch.Torch, l *convNextLayer, i int, input *torch.Var) torch.Value {
	f := t.Enter(input).In("layers", i)
	features := f.Let(input)
	residual := f.Let(features)
	features.Set(t.Conv2d(features, l.dwconv))
	features.Set(t.Permute(features, 0, 2, 3, 1))
	features.Set(t.LayerNorm(features, l.norm))
	features.Set(t.Linear(features, l.pwconv1))
	features.Set(m.act(t, features))
	if l.response != nil {
		features.Set(l.response.forward(t, features))
	}
	features.Set(t.Linear(features, l.pwconv2))
	if l.scale != nil {
		features.Set(t.Mul(torch.Borrow(l.scale), features))
	}
	features.Set(t.Permute(features, 0, 3, 1, 2))
	features.Set(t.Add(residual, dropPath(t, features, l.dropPath, m.run.Train)))
	return f.Return(features)
}
