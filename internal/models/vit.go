package models

import (
	"errors"
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var vitFamily = Family{
	Type: "vit", Images: true, read: reads(readViT),
	Heads: []Head{
		head("ViTForImageClassification", Classes, newViT),
		head("ViTModel", NoLabels, newViTAlone),
	},
}

// vitConfig is transformers' ViTConfig.
type vitConfig struct {
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
	PoolerSize       *int64  `json:"pooler_output_size"` // nil: hidden_size
	PoolerAct        string  `json:"pooler_act"`
}

// readViT reads a ViT configuration.
func readViT(c *hfconfig.Config) (*vitConfig, error) {
	v := &vitConfig{
		HiddenSize: 768, Layers: 12, Heads: 12, IntermediateSize: 3072, HiddenAct: "gelu",
		ImageSize: 224, PatchSize: 16, Channels: 3, QKVBias: true, NumLabels: 2, PoolerAct: "tanh",
	}
	if err := c.Decode(v, "layer_norm_eps", "encoder_stride"); err != nil {
		return nil, err
	}
	return v, v.validate()
}

func (v *vitConfig) validate() error {
	if err := errors.Join(
		invalid.Positive("hidden_size", v.HiddenSize), invalid.Positive("num_attention_heads", v.Heads),
		invalid.Positive("intermediate_size", v.IntermediateSize), invalid.Positive("patch_size", v.PatchSize), invalid.Positive("num_channels", v.Channels),
	); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	switch {
	case v.HiddenSize%v.Heads != 0:
		return fmt.Errorf("config: hidden_size is %d, which is not divisible by num_attention_heads, %d", v.HiddenSize, v.Heads)
	case v.NumLabels < 2:
		return fmt.Errorf("config: num_labels %d of a vit is not modelled", v.NumLabels)
	}
	return checkPatches(v.PatchSize, v.ImageSize)
}

// checkPatches reports patches that are larger than the image.
func checkPatches(patch, image int64) error {
	if patch > image {
		return fmt.Errorf("config: patch_size is %d; it must be at most image_size, which is %d", patch, image)
	}
	return nil
}

type vitLayer struct {
	query, key, value, output *torch.Linear
	normBefore, normAfter     *torch.LayerNorm
	fc1, fc2                  *torch.Linear
}

// vit is ViTModel, and ViTForImageClassification with a classifier (transformers/models/vit/modeling_vit.py).
type vit struct {
	cfg        *vitConfig
	run        Run
	act        activation
	class      *torch.Tensor // cls_token
	position   *torch.Tensor // position_embeddings
	projection *torch.Conv2d
	layers     []vitLayer
	norm       *torch.LayerNorm
	classifier *torch.Linear
	name       string        // what the head calls the model, "" without one
	pooler     *torch.Linear // of the model without a head
	poolerAct  activation
}

// checkImage refuses images of another size than that of the model, which has a
// position for each patch. The configuration is one that changes the model's.
func (r Run) checkImage(size int64, config string) error {
	if r.Image == size {
		return nil
	}
	changed := fmt.Sprintf(config, r.Image)
	return invalid.At("image", fmt.Errorf("image is %d, but the model's image_size is %d; leave image out, or set config to %s as well", r.Image, size, changed))
}

// newViTModel makes ViTModel, parameters in the order of its constructors.
func newViTModel(t *torch.Torch, c *vitConfig, r Run) (*vit, error) {
	if err := r.checkImage(c.ImageSize, `{"image_size": %d}`); err != nil {
		return nil, err
	}
	act, err := activationOf(c.HiddenAct)
	if err != nil {
		return nil, err
	}
	m := &vit{cfg: c, run: r, act: act}
	h, side := c.HiddenSize, c.ImageSize/c.PatchSize
	m.class = t.Parameter(r.DType, 1, 1, h).Named("cls_token")
	m.projection = t.NewConv2d(c.Channels, h, c.PatchSize, c.PatchSize, 0, true, r.DType)
	m.position = t.Parameter(r.DType, 1, side*side+1, h).Named("position_embeddings")
	t.ListBefore(m.position, m.projection.Weight)
	t.OwnAfterParts(m.class, m.position)
	for range c.Layers {
		m.layers = append(m.layers, m.newLayer(t))
	}
	m.norm = t.NewLayerNorm(h, r.DType)
	return m, nil
}

func (m *vit) newLayer(t *torch.Torch) vitLayer {
	c, h, dtype := m.cfg, m.cfg.HiddenSize, m.run.DType
	return vitLayer{
		query:      t.NewLinear(h, h, c.QKVBias, dtype).Named("attention.q_proj"),
		key:        t.NewLinear(h, h, c.QKVBias, dtype).Named("attention.k_proj"),
		value:      t.NewLinear(h, h, c.QKVBias, dtype).Named("attention.v_proj"),
		output:     t.NewLinear(h, h, true, dtype).Named("attention.o_proj"),
		normBefore: t.NewLayerNorm(h, dtype),
		normAfter:  t.NewLayerNorm(h, dtype),
		fc1:        t.NewLinear(h, c.IntermediateSize, true, dtype).Named("mlp.fc1"),
		fc2:        t.NewLinear(c.IntermediateSize, h, true, dtype).Named("mlp.fc2"),
	}
}

func newViT(t *torch.Torch, c *vitConfig, r Run) (*Model, error) {
	m, err := newViTModel(t, c, r)
	if err != nil {
		return nil, err
	}
	m.name = "vit"
	m.classifier = t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier")
	return &Model{Forward: m.forward}, nil
}

func newViTAlone(t *torch.Torch, c *vitConfig, r Run) (*Model, error) {
	m, err := newViTModel(t, c, r)
	if err != nil {
		return nil, err
	}
	size := c.HiddenSize
	if c.PoolerSize != nil {
		size = *c.PoolerSize
	}
	m.pooler = t.NewLinear(c.HiddenSize, size, true, r.DType).Named("pooler.dense")
	if m.poolerAct, err = activationOf(c.PoolerAct); err != nil {
		return nil, err
	}
	return bare(m.encode), nil
}

func (m *vit) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	sequence := m.encode(t, batch).let(f)
	pooled := f.Let(t.Select(sequence, 1))
	scores := t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) })
	return classifiedByLossFunction(t, f, scores, batch)
}

// encode is ViTModel.forward.
func (m *vit) encode(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	embedded := f.Let(m.embed(t, batch.Pixels))
	hidden := f.Let(embedded)
	callLayers(t, m.run, len(m.layers), hidden, m.layer)
	sequence := f.Let(t.In("layernorm", func() torch.Value { return t.LayerNorm(hidden, m.norm) }))
	pooled := f.Let(torch.Value{})
	if m.pooler != nil {
		pooled.Set(t.In("pooler", func() torch.Value { return m.poolerAct(t, t.Linear(t.Select(sequence, 1), m.pooler)) }))
	}
	out := trunkOutput{hidden: f.Keep(sequence), pooled: f.Keep(pooled)}
	f.End()
	return out
}

// callLayers calls GradientCheckpointingLayers that take nothing but hidden
// states, one after the other.
func callLayers(t *torch.Torch, r Run, n int, hidden *torch.Var, forward func(t *torch.Torch, i int, x *torch.Var) torch.Value) {
	for i := range n {
		layer := func(x *torch.Var, _ []*torch.Var) torch.Value { return forward(t, i, x) }
		if r.Checkpointing && r.Train {
			hidden.Set(t.Checkpoint(layer, hidden))
		} else {
			hidden.Set(layer(hidden, nil))
		}
	}
}

func (m *vit) embed(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("embeddings")
	patches := f.Let(t.Transpose(t.Flatten(t.Conv2d(torch.Borrow(pixels), m.projection), 2), 1, 2))
	if t.InputsRequireGrad { // patch_embeddings are its input embeddings
		patches.Tensor().RequireGrad()
	}
	class := f.Let(t.Expand(torch.Borrow(m.class), pixels.Shape[0], -1, -1))
	patches.Set(t.Cat(1, class, patches))
	patches.Set(t.Add(patches, torch.Borrow(m.position)))
	patches.Set(t.Dropout(patches, m.cfg.HiddenDropout, m.run.Train))
	return f.Return(patches)
}

func (m *vit) layer(t *torch.Torch, i int, input *torch.Var) torch.Value {
	f, l := t.Enter(input).In("layers", i), &m.layers[i]
	hidden := f.Let(input)
	residual := f.Let(hidden)
	hidden.Set(t.LayerNorm(hidden, l.normBefore))
	output, weights := m.attention(t, l, hidden)
	f.Let(weights) // hidden_states, _ = ...
	hidden.Set(output)
	hidden.Set(t.Dropout(hidden, m.cfg.HiddenDropout, m.run.Train))
	hidden.Set(t.Add(hidden, residual))

	residual.Set(hidden)
	hidden.Set(t.LayerNorm(hidden, l.normAfter))
	hidden.Set(m.mlp(t, l, hidden))
	hidden.Set(t.Dropout(hidden, m.cfg.HiddenDropout, m.run.Train))
	hidden.Set(t.Add(hidden, residual))
	return f.Return(hidden)
}

func (m *vit) attention(t *torch.Torch, l *vitLayer, hidden *torch.Var) (output, weights torch.Value) {
	f := t.Enter(hidden).In("attention")
	b, s := hidden.Tensor().Shape[0], hidden.Tensor().Shape[1]
	size := m.cfg.HiddenSize / m.cfg.Heads
	split := func(x torch.Value) *torch.Var {
		return f.Let(t.Transpose(t.View(x, b, s, -1, size), 1, 2))
	}
	q := split(t.Linear(hidden, l.query))
	k := split(t.Linear(hidden, l.key))
	v := split(t.Linear(hidden, l.value))
	p := m.run.dropout(m.cfg.AttentionDropout)
	var attended torch.Value
	if m.run.Eager {
		attended, weights = eagerAttention32(t, q, k, v, nil, p)
	} else {
		attended = t.Contiguous(t.Transpose(t.Attention(q, k, v, nil, p, false, false), 1, 2))
	}
	out := f.Let(attended)
	out.Set(t.Contiguous(t.Reshape(out, b, s, -1)))
	out.Set(t.Linear(out, l.output))
	return f.Return(out), weights
}

func (m *vit) mlp(t *torch.Torch, l *vitLayer, x *torch.Var) torch.Value {
	f := t.Enter(x).In("mlp")
	hidden := f.Let(t.Linear(x, l.fc1))
	hidden.Set(m.act(t, hidden))
	hidden.Set(t.Linear(hidden, l.fc2))
	return f.Return(hidden)
}
