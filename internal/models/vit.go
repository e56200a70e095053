package models

import (
	"fmt"

	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

type vitLayer struct {
	query, key, value, output *torch.Linear
	normBefore, normAfter     *torch.LayerNorm
	fc1, fc2                  *torch.Linear
}

// vit is ViTForImageClassification (transformers/models/vit/modeling_vit.py).
type vit struct {
	cfg        *workload.ViT
	train      bool
	eager      bool
	checkpoint bool // gradient_checkpointing, which evaluation does without
	act        activation
	class      *torch.Tensor // cls_token
	position   *torch.Tensor // position_embeddings
	projection *torch.Conv2d
	layers     []vitLayer
	norm       *torch.LayerNorm
	classifier *torch.Linear
}

// newViT makes the model, parameters in the order of its constructors.
func newViT(t *torch.Torch, c *workload.ViT, w *workload.Workload, dtype torch.DType) (*Model, error) {
	if w.Image != c.ImageSize {
		return nil, fmt.Errorf("image is %d, but the model's image_size is %d", w.Image, c.ImageSize)
	}
	act, err := activationOf(c.HiddenAct)
	if err != nil {
		return nil, err
	}
	train := w.Mode == workload.Training
	m := &vit{cfg: c, train: train, eager: w.Attention == workload.Eager, checkpoint: w.Checkpointing && train, act: act}
	h, side := c.HiddenSize, c.ImageSize/c.PatchSize
	m.class = t.Parameter(dtype, 1, 1, h)
	m.projection = t.NewConv2d(c.Channels, h, c.PatchSize, c.PatchSize, 0, true, dtype)
	m.position = t.Parameter(dtype, 1, side*side+1, h)
	t.ListBefore(m.position, m.projection.Weight)
	for range c.Layers {
		m.layers = append(m.layers, vitLayer{
			query:      t.NewLinear(h, h, c.QKVBias, dtype),
			key:        t.NewLinear(h, h, c.QKVBias, dtype),
			value:      t.NewLinear(h, h, c.QKVBias, dtype),
			output:     t.NewLinear(h, h, true, dtype),
			normBefore: t.NewLayerNorm(h, dtype),
			normAfter:  t.NewLayerNorm(h, dtype),
			fc1:        t.NewLinear(h, c.IntermediateSize, true, dtype),
			fc2:        t.NewLinear(c.IntermediateSize, h, true, dtype),
		})
	}
	m.norm = t.NewLayerNorm(h, dtype)
	m.classifier = t.NewLinear(h, c.NumLabels, true, dtype)
	return &Model{Forward: m.forward, Kind: Images, NumLabels: c.NumLabels}, nil
}

func (m *vit) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	sequence := f.Let(m.encode(t, batch.Pixels))
	pooled := f.Let(t.Select(sequence, 1))
	scores := t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) })
	return classified(t, f, scores, batch)
}

// encode is ViTModel without a pooler.
func (m *vit) encode(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("vit")
	embedded := f.Let(m.embed(t, pixels))
	hidden := f.Let(embedded)
	for i := range m.layers {
		layer := func(x *torch.Var, _ []*torch.Var) torch.Value { return m.layer(t, i, x) }
		if m.checkpoint {
			hidden.Set(t.Checkpoint(layer, hidden))
		} else {
			hidden.Set(layer(hidden, nil))
		}
	}
	sequence := f.Let(t.In("layernorm", func() torch.Value { return t.LayerNorm(hidden, m.norm) }))
	return f.Return(sequence)
}

func (m *vit) embed(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("embeddings")
	patches := f.Let(t.Transpose(t.Flatten(t.Conv2d(torch.Borrow(pixels), m.projection), 2), 1, 2))
	class := f.Let(t.Expand(torch.Borrow(m.class), pixels.Shape[0], -1, -1))
	patches.Set(t.Cat(1, class, patches))
	patches.Set(t.Add(patches, torch.Borrow(m.position)))
	patches.Set(t.Dropout(patches, m.cfg.HiddenDropout, m.train))
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
	hidden.Set(t.Dropout(hidden, m.cfg.HiddenDropout, m.train))
	hidden.Set(t.Add(hidden, residual))

	residual.Set(hidden)
	hidden.Set(t.LayerNorm(hidden, l.normAfter))
	hidden.Set(m.mlp(t, l, hidden))
	hidden.Set(t.Dropout(hidden, m.cfg.HiddenDropout, m.train))
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
	p := m.cfg.AttentionDropout
	if !m.train {
		p = 0
	}
	var attended torch.Value
	if m.eager {
		attended, weights = m.eagerAttention(t, q, k, v, p)
	} else {
		attended = t.Contiguous(t.Transpose(t.Attention(q, k, v, nil, p, false, false), 1, 2))
	}
	out := f.Let(attended)
	out.Set(t.Contiguous(t.Reshape(out, b, s, -1)))
	out.Set(t.Linear(out, l.output))
	return f.Return(out), weights
}

// eagerAttention is eager_attention_forward: softmax in float32.
func (m *vit) eagerAttention(t *torch.Torch, q, k, v *torch.Var, dropout float64) (output, weights torch.Value) {
	f := t.Enter()
	w := f.Let(t.Scale(t.MatMul(q, t.Transpose(k, 2, 3))))
	w.Set(t.To(t.Softmax(w, torch.Float32), q.Tensor().DType))
	w.Set(t.Dropout(w, dropout, m.train))
	out := f.Let(t.MatMul(w, v))
	out.Set(t.Contiguous(t.Transpose(out, 1, 2)))
	output, weights = f.Keep(out), f.Keep(w)
	f.End()
	return output, weights
}

func (m *vit) mlp(t *torch.Torch, l *vitLayer, x *torch.Var) torch.Value {
	f := t.Enter(x).In("mlp")
	hidden := f.Let(t.Linear(x, l.fc1))
	hidden.Set(m.act(t, hidden))
	hidden.Set(t.Linear(hidden, l.fc2))
	return f.Return(hidden)
}
