package models

import (
	"fmt"
	"math"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var dinov2Family = Family{
	Type: "dinov2", Images: true, AnyImage: true, read: reads(readDINOv2),
	Heads: []Head{
		head("Dinov2ForImageClassification", Classes, newDINOv2),
		head("Dinov2Model", NoLabels, newDINOv2Alone),
	},
}

// dinov2Config is transformers' Dinov2Config.
type dinov2Config struct {
	HiddenSize       int64   `json:"hidden_size"`
	Layers           int64   `json:"num_hidden_layers"`
	Heads            int64   `json:"num_attention_heads"`
	MLPRatio         float64 `json:"mlp_ratio"`
	HiddenAct        string  `json:"hidden_act"`
	HiddenDropout    float64 `json:"hidden_dropout_prob"`
	AttentionDropout float64 `json:"attention_probs_dropout_prob"`
	ImageSize        int64   `json:"image_size"`
	PatchSize        int64   `json:"patch_size"`
	Channels         int64   `json:"num_channels"`
	QKVBias          bool    `json:"qkv_bias"`
	DropPath         float64 `json:"drop_path_rate"`
	SwiGLU           bool    `json:"use_swiglu_ffn"`
	MaskToken        bool    `json:"use_mask_token"`
	NumLabels        int64   `json:"num_labels"`
}

// readDINOv2 reads a DINOv2 configuration.
func readDINOv2(c *hfconfig.Config) (*dinov2Config, error) {
	d := &dinov2Config{
		HiddenSize: 768, Layers: 12, Heads: 12, MLPRatio: 4, HiddenAct: "gelu",
		ImageSize: 224, PatchSize: 14, Channels: 3, QKVBias: true, MaskToken: true, NumLabels: 2,
	}
	if err := c.Decode(d, "layer_norm_eps", "layerscale_value", "apply_layernorm", "reshape_hidden_states", "out_features", "out_indices", "stage_names"); err != nil {
		return nil, err
	}
	return d, d.validate()
}

func (d *dinov2Config) validate() error {
	switch {
	case d.MLPRatio <= 0 || d.MLPRatio > 1<<10:
		return fmt.Errorf("config: mlp_ratio is %g; it must be above 0 and at most 1024", d.MLPRatio)
	case d.NumLabels < 2:
		return fmt.Errorf("config: num_labels %d of a dinov2 is not modelled", d.NumLabels)
	}
	if err := checkPatches(d.PatchSize, d.ImageSize); err != nil {
		return err
	}
	return invalid.At("config", checkEncoder(d.NumLabels, 0, d.HiddenDropout, d.AttentionDropout, d.DropPath))
}

// inner is the width of a feed-forward layer; a gated one has two of them.
func (d *dinov2Config) inner() int64 {
	inner := int64(float64(d.HiddenSize) * d.MLPRatio)
	if d.SwiGLU {
		inner = (int64(float64(inner*2)/3) + 7) / 8 * 8
	}
	return inner
}

type dinov2Layer struct {
	norm1, norm2              *torch.LayerNorm
	query, key, value, output *torch.Linear
	scale1, scale2            *torch.Tensor // lambda1 of layer_scale1 and layer_scale2
	first, second             *torch.Linear // fc1 and fc2, or weights_in and weights_out
}

// dinov2 is Dinov2Model, and Dinov2ForImageClassification with a classifier
// (transformers/models/dinov2/modeling_dinov2.py).
type dinov2 struct {
	cfg        *dinov2Config
	run        Run
	act        activation
	class      *torch.Tensor // cls_token
	position   *torch.Tensor // position_embeddings
	projection *torch.Conv2d
	layers     []dinov2Layer
	norm       *torch.LayerNorm
	classifier *torch.Linear
	name       string // what the head calls the model, "" without one
}

// newDINOv2Model makes Dinov2Model, parameters in the order of its constructors.
func newDINOv2Model(t *torch.Torch, c *dinov2Config, r Run) (*dinov2, error) {
	if r.Image < c.PatchSize {
		return nil, fmt.Errorf("image is %d; it must be at least %d, the model's patch_size", r.Image, c.PatchSize)
	}
	act, err := activationOf(c.HiddenAct)
	if err != nil {
		return nil, err
	}
	m := &dinov2{cfg: c, run: r, act: act}
	h, side := c.HiddenSize, c.ImageSize/c.PatchSize
	own := []*torch.Tensor{t.Parameter(r.DType, 1, 1, h).Named("cls_token")}
	if m.class = own[0]; c.MaskToken {
		own = append(own, t.Parameter(r.DType, 1, h).Named("mask_token")) // which only pre-training reads
	}
	m.projection = t.NewConv2d(c.Channels, h, c.PatchSize, c.PatchSize, 0, true, r.DType)
	m.position = t.Parameter(r.DType, 1, side*side+1, h).Named("position_embeddings")
	t.ListBefore(m.position, m.projection.Weight)
	t.OwnAfterParts(append(own, m.position)...)
	for range c.Layers {
		m.layers = append(m.layers, newDINOv2Layer(t, c, r))
	}
	m.norm = t.NewLayerNorm(h, r.DType)
	return m, nil
}

func newDINOv2Layer(t *torch.Torch, c *dinov2Config, r Run) dinov2Layer {
	h := c.HiddenSize
	// layerscale_value * torch.ones(hidden_size)
	scale := func() *torch.Tensor {
		ones := t.Full(r.DType, h)
		lambda := t.Parameter(r.DType, h).Named("lambda1").OddDecay()
		t.Drop(ones)
		return lambda
	}
	linear := func(name string, in, out int64, bias bool) *torch.Linear {
		return t.NewLinear(in, out, bias, r.DType).Named(name)
	}
	l := dinov2Layer{norm1: t.NewLayerNorm(h, r.DType)}
	l.query = linear("attention.attention.query", h, h, c.QKVBias)
	l.key = linear("attention.attention.key", h, h, c.QKVBias)
	l.value = linear("attention.attention.value", h, h, c.QKVBias)
	l.output = linear("attention.output.dense", h, h, true)
	l.scale1 = scale()
	l.norm2 = t.NewLayerNorm(h, r.DType)
	if inner := c.inner(); c.SwiGLU {
		l.first = linear("mlp.weights_in", h, 2*inner, true)
		l.second = linear("mlp.weights_out", inner, h, true)
	} else {
		l.first = linear("mlp.fc1", h, inner, true)
		l.second = linear("mlp.fc2", inner, h, true)
	}
	l.scale2 = scale()
	return l
}

func newDINOv2(t *torch.Torch, c *dinov2Config, r Run) (*Model, error) {
	m, err := newDINOv2Model(t, c, r)
	if err != nil {
		return nil, err
	}
	m.name = "dinov2"
	m.classifier = t.NewLinear(2*c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier")
	return &Model{Forward: m.forward}, nil
}

func newDINOv2Alone(t *torch.Torch, c *dinov2Config, r Run) (*Model, error) {
	m, err := newDINOv2Model(t, c, r)
	if err != nil {
		return nil, err
	}
	return bare(m.encode), nil
}

func (m *dinov2) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	sequence := m.encode(t, batch).let(f)
	class := f.Let(t.Select(sequence, 1))
	patches := f.Let(t.Slice(sequence, 1, 1, sequence.Tensor().Dim(1)))
	input := f.Let(t.Cat(1, class, t.MeanOver(patches, 1)))
	scores := t.In("classifier", func() torch.Value { return t.Linear(input, m.classifier) })
	return classifiedByLossFunction(t, f, scores, batch)
}

// encode is Dinov2Model.forward.
func (m *dinov2) encode(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	embedded := f.Let(m.embed(t, batch.Pixels))
	hidden := f.Let(embedded)
	callLayers(t, m.run, len(m.layers), hidden, m.layer)
	sequence := f.Let(t.In("layernorm", func() torch.Value { return t.LayerNorm(hidden, m.norm) }))
	pooled := f.Let(t.Select(sequence, 1))
	out := trunkOutput{hidden: f.Keep(sequence), pooled: f.Keep(pooled)}
	f.End()
	return out
}

// embed is Dinov2Embeddings.
func (m *dinov2) embed(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("embeddings")
	embeddings := f.Let(t.Transpose(t.Flatten(t.Conv2d(torch.Borrow(pixels), m.projection), 2), 1, 2))
	class := f.Let(t.Expand(torch.Borrow(m.class), pixels.Shape[0], -1, -1))
	embeddings.Set(t.Cat(1, class, embeddings))
	embeddings.Set(t.Add(embeddings, m.positions(t, embeddings.Tensor().Dim(1)-1)))
	embeddings.Set(t.Dropout(embeddings, m.cfg.HiddenDropout, m.run.Train))
	return f.Return(embeddings)
}

// positions is interpolate_pos_encoding: images of another size than the
// model's get positions between its own, computed in float32.
func (m *dinov2) positions(t *torch.Torch, patches int64) torch.X {
	c := m.cfg
	own := m.position.Dim(1) - 1
	if patches == own {
		return torch.Borrow(m.position)
	}
	f := t.Enter()
	class := f.Let(t.Slice(torch.Borrow(m.position), 1, 0, 1))
	grid := f.Let(t.Slice(torch.Borrow(m.position), 1, 1, own+1))
	from, to := int64(math.Sqrt(float64(own))), m.run.Image/c.PatchSize
	grid.Set(t.Reshape(grid, 1, from, from, c.HiddenSize))
	grid.Set(t.Permute(grid, 0, 3, 1, 2))
	grid.Set(t.To(t.UpsampleBicubic(t.To(grid, torch.Float32), to, to), m.position.DType))
	grid.Set(t.View(t.Permute(grid, 0, 2, 3, 1), 1, -1, c.HiddenSize))
	return f.Return(t.Cat(1, class, grid))
}

func (m *dinov2) layer(t *torch.Torch, i int, input *torch.Var) torch.Value {
	f, l := t.Enter(input).In("encoder.layer", i), &m.layers[i]
	hidden := f.Let(input)
	normed := f.Let(t.LayerNorm(hidden, l.norm1))
	attended := f.Let(m.attention(t, l, normed))
	attended.Set(t.Mul(attended, torch.Borrow(l.scale1)))
	hidden.Set(t.Add(dropPath(t, attended, m.cfg.DropPath, m.run.Train), hidden))
	output := f.Let(t.LayerNorm(hidden, l.norm2))
	output.Set(m.mlp(t, l, output))
	output.Set(t.Mul(output, torch.Borrow(l.scale2)))
	output.Set(t.Add(dropPath(t, output, m.cfg.DropPath, m.run.Train), hidden))
	return f.Return(output)
}

// dropPath is SwinDropPath and its copies: whole samples are dropped.
func dropPath(t *torch.Torch, x *torch.Var, p float64, train bool) torch.Value {
	if p == 0 || !train {
		return t.Hold(x)
	}
	f := t.Enter()
	shape := make([]int64, len(x.Tensor().Shape))
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = x.Tensor().Dim(0)
	random := f.Let(t.Full(x.Tensor().DType, shape...))
	random.Set(t.FullLike(t.FullLike(random))) // floor(random + keep_prob)
	return f.Return(t.Mul(t.Scale(x), random))
}

// attention is Dinov2Attention.
func (m *dinov2) attention(t *torch.Torch, l *dinov2Layer, hidden *torch.Var) torch.Value {
	f := t.Enter(hidden).In("attention")
	context, weights := m.selfAttention(t, l, hidden)
	attended := f.Let(context)
	f.Let(weights) // self_attn_output, _ = ...
	g := t.Enter()
	output := g.Let(t.Linear(attended, l.output))
	output.Set(t.Dropout(output, m.cfg.HiddenDropout, m.run.Train))
	return f.Return(g.Return(output))
}

func (m *dinov2) selfAttention(t *torch.Torch, l *dinov2Layer, hidden *torch.Var) (output, weights torch.Value) {
	f := t.Enter()
	b, s := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	split := func(p *torch.Linear) *torch.Var {
		return f.Let(t.Transpose(t.View(t.Linear(hidden, p), b, s, m.cfg.Heads, -1), 1, 2))
	}
	k, v, q := split(l.key), split(l.value), split(l.query)
	p := m.run.dropout(m.cfg.AttentionDropout)
	var attended torch.Value
	if m.run.Eager {
		attended, weights = eagerAttention(t, q, k, v, nil, p)
	} else {
		attended = t.Contiguous(t.Transpose(t.Attention(q, k, v, nil, p, false, false), 1, 2))
	}
	context := f.Let(attended)
	context.Set(t.Reshape(context, b, s, -1))
	return f.Return(context), weights
}

func (m *dinov2) mlp(t *torch.Torch, l *dinov2Layer, x *torch.Var) torch.Value {
	f := t.Enter(x).In("mlp")
	hidden := f.Let(t.Linear(x, l.first))
	if m.cfg.SwiGLU {
		parts := t.Split(hidden, hidden.Tensor().Dim(-1)/2, -1)
		x1, x2 := f.Let(parts[0]), f.Let(parts[1])
		gated := f.Let(t.Mul(t.SiLU(x1), x2))
		return f.Return(t.Linear(gated, l.second))
	}
	hidden.Set(m.act(t, hidden))
	hidden.Set(t.Linear(hidden, l.second))
	return f.Return(hidden)
}
