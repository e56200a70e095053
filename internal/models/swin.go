package models

import (
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var swinFamily = Family{
	Type: "swin", Images: true, read: reads(readSwin),
	Heads: []Head{
		head("SwinForImageClassification", Classes, newSwin),
		head("SwinModel", NoLabels, newSwinAlone),
	},
}

// swinConfig is transformers' SwinConfig.
type swinConfig struct {
	ImageSize        int64   `json:"image_size"`
	PatchSize        int64   `json:"patch_size"`
	Channels         int64   `json:"num_channels"`
	EmbedDim         int64   `json:"embed_dim"`
	Depths           []int64 `json:"depths"`
	Heads            []int64 `json:"num_heads"`
	Window           int64   `json:"window_size"`
	MLPRatio         float64 `json:"mlp_ratio"`
	QKVBias          bool    `json:"qkv_bias"`
	HiddenDropout    float64 `json:"hidden_dropout_prob"`
	AttentionDropout float64 `json:"attention_probs_dropout_prob"`
	DropPath         float64 `json:"drop_path_rate"`
	HiddenAct        string  `json:"hidden_act"`
	Absolute         bool    `json:"use_absolute_embeddings"`
	NumLabels        int64   `json:"num_labels"`
}

// readSwin reads a Swin configuration.
func readSwin(c *hfconfig.Config) (*swinConfig, error) {
	s := &swinConfig{
		ImageSize: 224, PatchSize: 4, Channels: 3, EmbedDim: 96, Depths: []int64{2, 2, 6, 2}, Heads: []int64{3, 6, 12, 24}, Window: 7,
		MLPRatio: 4, QKVBias: true, DropPath: 0.1, HiddenAct: "gelu", NumLabels: 2,
	}
	err := c.Decode(s, "layer_norm_eps", "encoder_stride", "hidden_size", "num_layers", "num_hidden_layers", "path_norm", "out_features", "out_indices", "stage_names")
	if err != nil {
		return nil, err
	}
	return s, s.validate()
}

func (s *swinConfig) validate() error {
	switch {
	case len(s.Depths) != len(s.Heads) || len(s.Depths) == 0 || len(s.Depths) > 16:
		return fmt.Errorf("config: there are %d depths and %d num_heads", len(s.Depths), len(s.Heads))
	case s.ImageSize%s.PatchSize != 0:
		return fmt.Errorf("config: image_size is %d, which patch_size, %d, does not divide; a swin that pads its images is not modelled", s.ImageSize, s.PatchSize)
	case s.MLPRatio <= 0 || s.MLPRatio > 1<<10:
		return fmt.Errorf("config: mlp_ratio is %g; it must be above 0 and at most 1024", s.MLPRatio)
	}
	side := s.ImageSize / s.PatchSize
	for i, heads := range s.Heads {
		switch width := s.EmbedDim << i; {
		case width%heads != 0:
			return fmt.Errorf("config: stage %d is %d wide, which its %d heads do not divide", i, width, heads)
		case side < s.Window:
			return fmt.Errorf("config: the images of stage %d are %d wide, less than window_size, %d", i, side, s.Window)
		}
		side = (side + 1) / 2
	}
	return checkEncoder(s.NumLabels, 0, s.HiddenDropout, s.AttentionDropout, s.DropPath)
}

type swinLayer struct {
	query, key, value, output *torch.Linear
	table                     *torch.Tensor // relative_position_bias_table
	index                     *torch.Tensor // relative_position_index
	normBefore, normAfter     *torch.LayerNorm
	fc1, fc2                  *torch.Linear
	dropPath                  float64
	shift                     bool
}

type swinStage struct {
	side, heads int64
	layers      []swinLayer
	reduction   *torch.Linear // of SwinPatchMerging, nil without
	norm        *torch.LayerNorm
}

// swin is SwinModel, and SwinForImageClassification with a classifier
// (transformers/models/swin/modeling_swin.py).
type swin struct {
	cfg        *swinConfig
	run        Run
	act        activation
	patches    *torch.Conv2d
	position   *torch.Tensor // position_embeddings, nil without
	embedNorm  *torch.LayerNorm
	stages     []swinStage
	norm       *torch.LayerNorm
	classifier *torch.Linear
	name       string // what the head calls the model, "" without one
}

// newSwinModel makes SwinModel, parameters in the order of its constructors.
func newSwinModel(t *torch.Torch, c *swinConfig, r Run) (*swin, error) {
	if err := r.checkImage(c.ImageSize, `{"image_size": %d}`); err != nil {
		return nil, err
	}
	act, err := activationOf(c.HiddenAct)
	if err != nil {
		return nil, err
	}
	m := &swin{cfg: c, run: r, act: act, patches: t.NewConv2d(c.Channels, c.EmbedDim, c.PatchSize, c.PatchSize, 0, true, r.DType)}
	side := c.ImageSize / c.PatchSize
	if c.Absolute {
		m.position = t.Parameter(r.DType, 1, side*side, c.EmbedDim).Named("position_embeddings")
		t.ListBefore(m.position, m.patches.Weight)
	}
	m.embedNorm = t.NewLayerNorm(c.EmbedDim, r.DType)
	if c.Absolute {
		t.OwnAfterParts(m.position)
	}
	m.makeStages(t, side)
	m.norm = t.NewLayerNorm(c.EmbedDim<<(len(c.Depths)-1), r.DType)
	return m, nil
}

// makeStages makes SwinEncoder. Its post_init computes the indices of relative
// positions once more.
func (m *swin) makeStages(t *torch.Torch, side int64) {
	c, dtype := m.cfg, m.run.DType
	count, made := int64(0), int64(0)
	for _, depth := range c.Depths {
		count += depth
	}
	for i, depth := range c.Depths {
		width := c.EmbedDim << i
		stage := swinStage{side: side, heads: c.Heads[i]}
		for j := range depth {
			l := m.newLayer(t, width, stage.heads)
			l.dropPath = c.DropPath * float64(made) / float64(max(count-1, 1))
			l.shift = j%2 == 1 && side > c.Window && c.Window > 1
			stage.layers = append(stage.layers, l)
			made++
		}
		if i < len(c.Depths)-1 {
			stage.reduction = t.NewLinear(4*width, 2*width, false, dtype).Named("downsample.reduction")
			stage.norm = t.NewLayerNorm(4*width, dtype)
		}
		m.stages = append(m.stages, stage)
		side = (side + 1) / 2
	}
	for range count {
		var again torch.Value
		m.relativePositions(t, func() { again = t.Full(torch.Int64, c.Window*c.Window*c.Window*c.Window) })
		t.Drop(again)
	}
}

func (m *swin) newLayer(t *torch.Torch, width, heads int64) swinLayer {
	c, dtype := m.cfg, m.run.DType
	linear := func(name string, in, out int64, bias bool) *torch.Linear {
		return t.NewLinear(in, out, bias, dtype).Named(name)
	}
	l := swinLayer{
		query: linear("attention.q_proj", width, width, c.QKVBias), key: linear("attention.k_proj", width, width, c.QKVBias),
		value: linear("attention.v_proj", width, width, c.QKVBias), output: linear("attention.o_proj", width, width, true),
	}
	l.table = t.Parameter(dtype, (2*c.Window-1)*(2*c.Window-1), heads).Named("relative_position_bias_table").OddDecay()
	m.relativePositions(t, func() { l.index = t.Buffer(torch.Int64, c.Window*c.Window*c.Window*c.Window) })
	l.normBefore, l.normAfter = t.NewLayerNorm(width, dtype), t.NewLayerNorm(width, dtype)
	inner := int64(c.MLPRatio * float64(width))
	l.fc1, l.fc2 = linear("mlp.fc1", width, inner, true), linear("mlp.fc2", inner, width, true)
	return l
}

// relativePositions is _create_relative_position_index; sum makes its result.
func (m *swin) relativePositions(t *torch.Torch, sum func()) {
	f := t.Enter()
	n := m.cfg.Window
	f.Let(t.Arange(n))
	f.Let(t.Arange(n))
	f.Let(t.Full(torch.Int64, 2, n*n))
	differences := f.Let(t.Full(torch.Int64, 2, n*n, n*n))
	differences.Set(t.Full(torch.Int64, n*n, n*n, 2))
	sum()
	f.End()
}

func newSwin(t *torch.Torch, c *swinConfig, r Run) (*Model, error) {
	m, err := newSwinModel(t, c, r)
	if err != nil {
		return nil, err
	}
	m.name = "swin"
	m.classifier = t.NewLinear(c.EmbedDim<<(len(c.Depths)-1), c.NumLabels, true, r.DType).Named("classifier")
	return &Model{Forward: m.forward}, nil
}

func newSwinAlone(t *torch.Torch, c *swinConfig, r Run) (*Model, error) {
	m, err := newSwinModel(t, c, r)
	if err != nil {
		return nil, err
	}
	return bare(m.encode), nil
}

func (m *swin) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	o := m.encode(t, batch)
	f.Let(o.hidden)
	pooled := f.Let(o.pooled)
	scores := t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) })
	return classified(t, f, scores, batch)
}

// encode is SwinModel.forward.
func (m *swin) encode(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	embedded := f.Let(m.embed(t, batch.Pixels))
	g := t.Enter()
	hidden, weights, reshaped := g.Let(embedded), g.Let(torch.Value{}), g.Let(torch.Value{}) // "_" is an older name than the image
	for i := range m.stages {
		states, rest := m.checkpointed(t, hidden, func(x *torch.Var) (torch.Value, []torch.Value) { return m.stage(t, i, x) })
		hidden.Set(states)
		reshaped.Set(rest[0])
		weights.Set(rest[1]) // in "_", until the next stage is done
	}
	sequence := f.Let(g.Return(hidden))
	f.Let(sequence) // encoder_outputs
	sequence.Set(t.In("layernorm", func() torch.Value { return t.LayerNorm(sequence, m.norm) }))
	pooled := f.Let(t.MeanLastPool(t.Transpose(sequence, 1, 2)))
	pooled.Set(t.Flatten(pooled, 1))
	out := trunkOutput{hidden: f.Keep(sequence), pooled: f.Keep(pooled)}
	f.End()
	return out
}

// embed is SwinEmbeddings.
func (m *swin) embed(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("embeddings")
	embeddings := f.Let(t.Transpose(t.Flatten(t.Conv2d(torch.Borrow(pixels), m.patches), 2), 1, 2))
	embeddings.Set(t.LayerNorm(embeddings, m.embedNorm))
	if m.position != nil {
		embeddings.Set(t.Add(embeddings, torch.Borrow(m.position)))
	}
	embeddings.Set(t.Dropout(embeddings, m.cfg.HiddenDropout, m.run.Train))
	return f.Return(embeddings)
}

// checkpointed calls a module that is a GradientCheckpointingLayer, and returns
// several tensors: stages are, and the layers within them.
func (m *swin) checkpointed(t *torch.Torch, x *torch.Var, module func(*torch.Var) (torch.Value, []torch.Value)) (states torch.Value, rest []torch.Value) {
	if !m.run.Checkpointing || !m.run.Train {
		return module(x)
	}
	again := false
	states = t.CheckpointInputs(func(inputs []*torch.Var) torch.Value {
		out, other := module(inputs[0])
		if again {
			for _, v := range other {
				t.Drop(v)
			}
		} else {
			again, rest = true, other
		}
		return out
	}, x)
	return states, rest
}

// stage is SwinStage: its layers, what joins four patches to one, and an image
// of the result, which is made whether it is used or not.
func (m *swin) stage(t *torch.Torch, i int, input *torch.Var) (states torch.Value, imageAndWeights []torch.Value) {
	f, s := t.Enter(input).In("encoder.layers", i), &m.stages[i]
	hidden, weights := f.Let(input), f.Let(torch.Value{})
	for j := range s.layers {
		out, rest := m.checkpointed(t, hidden, func(x *torch.Var) (torch.Value, []torch.Value) { return m.layer(t, s, j, x) })
		hidden.Set(out)
		weights.Set(rest[0])
	}
	f.Let(hidden) // hidden_states_before_downsampling
	side := s.side
	if s.reduction != nil {
		hidden.Set(m.merge(t, s, hidden))
		side = (side + 1) / 2
	}
	x := hidden.Tensor()
	reshaped := f.Let(t.Contiguous(t.Permute(t.View(hidden, x.Dim(0), side, side, x.Dim(2)), 0, 3, 1, 2)))
	states, imageAndWeights = f.Keep(hidden), []torch.Value{f.Keep(reshaped), f.Keep(weights)}
	f.End()
	return states, imageAndWeights
}

// merge is SwinPatchMerging.
func (m *swin) merge(t *torch.Torch, s *swinStage, input *torch.Var) torch.Value {
	f := t.Enter().In("downsample")
	b, width := input.Tensor().Dim(0), input.Tensor().Dim(2)
	x := f.Let(t.View(input, b, s.side, s.side, width))
	if s.side%2 == 1 {
		x.Set(t.PadImage(x, 1))
	}
	var parts []torch.X
	for column := range int64(2) {
		for row := range int64(2) {
			parts = append(parts, t.Every(t.Every(x, 1, row, 2), 2, column, 2))
		}
	}
	x.Set(t.Cat(-1, parts...))
	x.Set(t.View(x, b, -1, 4*width))
	x.Set(t.LayerNorm(x, s.norm))
	x.Set(t.Linear(x, s.reduction))
	return f.Return(x)
}

// layer is SwinLayer: attention within windows, which every other layer shifts.
func (m *swin) layer(t *torch.Torch, s *swinStage, i int, input *torch.Var) (states torch.Value, weights []torch.Value) {
	f, l := t.Enter(input).In("blocks", i), &s.layers[i]
	window := m.cfg.Window
	hidden := f.Let(input)
	b, width := hidden.Tensor().Dim(0), hidden.Tensor().Dim(2)
	shortcut := f.Let(hidden)
	hidden.Set(t.LayerNorm(hidden, l.normBefore))
	hidden.Set(t.View(hidden, b, s.side, s.side, width))
	padding := (window - s.side%window) % window
	hidden.Set(t.PadImage(hidden, padding))
	side := s.side + padding

	shifted := t.Hold(hidden)
	if l.shift {
		shifted = t.Roll(shifted, 2)
	}
	windows := f.Let(m.partition(t, shifted))
	windows.Set(t.View(windows, -1, window*window, width))
	mask := f.Let(torch.Value{})
	if l.shift {
		mask.Set(m.shiftMask(t, side, hidden.Tensor().DType))
	}
	attended, attentionWeights := m.attention(t, l, s.heads, windows, mask)
	output := f.Let(attended)
	w := f.Let(attentionWeights)
	output.Set(t.Dropout(output, m.cfg.HiddenDropout, m.run.Train))
	joined := f.Let(t.View(output, -1, window, window, width))
	joined.Set(m.join(t, l, joined, side))
	if padding > 0 {
		joined.Set(t.Contiguous(t.Slice(t.Slice(joined, 1, 0, s.side), 2, 0, s.side)))
	}
	joined.Set(t.View(joined, b, s.side*s.side, width))
	hidden.Set(t.Add(shortcut, dropPath(t, joined, l.dropPath, m.run.Train)))

	residual := f.Let(hidden)
	hidden.Set(t.LayerNorm(hidden, l.normAfter))
	hidden.Set(m.feedForward(t, l, hidden))
	hidden.Set(t.Add(t.Dropout(hidden, m.cfg.HiddenDropout, m.run.Train), residual))
	states, weights = f.Keep(hidden), []torch.Value{f.Keep(w)}
	f.End()
	return states, weights
}

// partition is window_partition.
func (m *swin) partition(t *torch.Torch, input torch.Value) torch.Value {
	f := t.Enter(input)
	window, x := m.cfg.Window, f.Let(input.Borrow())
	b, side, width := x.Tensor().Dim(0), x.Tensor().Dim(1), x.Tensor().Dim(3)
	x.Set(t.View(x, b, side/window, window, side/window, window, width))
	windows := f.Let(t.View(t.Contiguous(t.Transpose(x, 2, 3)), -1, window, window, width))
	return f.Return(windows)
}

// join is window_reverse, and a shift back.
func (m *swin) join(t *torch.Torch, l *swinLayer, input *torch.Var, side int64) torch.Value {
	f := t.Enter()
	window, x := m.cfg.Window, f.Let(input)
	width := x.Tensor().Dim(3)
	x.Set(t.View(x, -1, side/window, side/window, window, window, width))
	x.Set(t.View(t.Contiguous(t.Transpose(x, 2, 3)), -1, side, side, width))
	out := f.Return(x)
	if l.shift {
		out = t.Roll(out, 2)
	}
	return out
}

// shiftMask is get_attn_mask: windows that were put together from the edges of
// an image do not look into each other.
func (m *swin) shiftMask(t *torch.Torch, side int64, dtype torch.DType) torch.Value {
	f := t.Enter()
	window := m.cfg.Window
	rows, columns := f.Let(t.Arange(side)), f.Let(t.Arange(side))
	region := func(of *torch.Var) *torch.Var {
		first := t.To(t.Compare(of), torch.Int64)
		return f.Let(t.Integers(first, t.To(t.Compare(of), torch.Int64)))
	}
	rowRegion := region(rows)
	columnRegion := region(columns)
	scaled := t.Integers(t.View(rowRegion, 1, side, 1, 1))
	image := f.Let(t.To(t.Integers(scaled, t.View(columnRegion, 1, 1, side, 1)), dtype))
	windows := f.Let(m.partition(t, t.Hold(image)))
	windows.Set(t.View(windows, -1, window*window))
	mask := f.Let(t.Add(t.Unsqueeze(windows, 1), t.Unsqueeze(windows, 2)))
	filled := t.MaskedFill(mask, t.Compare(mask))
	mask.Set(t.MaskedFill(filled, t.Compare(mask)))
	return f.Return(mask)
}

func (m *swin) attention(t *torch.Torch, l *swinLayer, heads int64, hidden, given *torch.Var) (output, weights torch.Value) {
	f := t.Enter().In("attention")
	b, s := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	mask := f.Let(given)
	split := func(p *torch.Linear) *torch.Var {
		return f.Let(t.Transpose(t.View(t.Linear(hidden, p), b, s, heads, -1), 1, 2))
	}
	q, k, v := split(l.query), split(l.key), split(l.value)
	bias := f.Let(m.positionBias(t, l))
	combined := f.Let(bias)
	if mask.Tensor() != nil {
		n := mask.Tensor().Dim(0)
		wide := t.Expand(t.Unsqueeze(t.Unsqueeze(mask, 1), 0), b/n, -1, -1, -1, -1)
		mask.Set(t.Reshape(wide, -1, 1, s, s))
		combined.Set(t.Add(bias, mask))
	}
	p := m.run.dropout(m.cfg.AttentionDropout)
	var attended torch.Value
	if m.run.Eager {
		attended, weights = eagerAttention32(t, q, k, v, combined, p)
	} else {
		attended = t.Contiguous(t.Transpose(t.Attention(q, k, v, combined, p, false, false), 1, 2))
	}
	out := f.Let(attended)
	out.Set(t.Contiguous(t.Reshape(out, b, s, -1)))
	out.Set(t.Linear(out, l.output))
	return f.Return(out), weights
}

// positionBias is SwinRelativePositionBias.
func (m *swin) positionBias(t *torch.Torch, l *swinLayer) torch.Value {
	f := t.Enter().In("relative_position_bias")
	area := m.cfg.Window * m.cfg.Window
	bias := f.Let(t.Rows(torch.Borrow(l.table), torch.Borrow(l.index)))
	bias.Set(t.View(bias, area, area, -1))
	return f.Return(t.Unsqueeze(t.Contiguous(t.Permute(bias, 2, 0, 1)), 0))
}

func (m *swin) feedForward(t *torch.Torch, l *swinLayer, x *torch.Var) torch.Value {
	f := t.Enter(x).In("mlp")
	hidden := f.Let(t.Linear(x, l.fc1))
	hidden.Set(m.act(t, hidden))
	hidden.Set(t.Linear(hidden, l.fc2))
	return f.Return(hidden)
}
