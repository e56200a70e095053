package models

import (
	"cmp"
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var siglipFamily = Family{
	Type: "siglip", Images: true, read: reads(readSigLIP),
	Heads: []Head{
		head("SiglipModel", Pairs, newSigLIP),
		head("SiglipForImageClassification", Classes, newSigLIPClassifier),
	},
}

// readSigLIP reads transformers' SiglipConfig.
func readSigLIP(c *hfconfig.Config) (*pairConfig, error) {
	tower := towerConfig{HiddenSize: 768, IntermediateSize: 3072, Layers: 12, Heads: 12, HiddenAct: "gelu_pytorch_tanh"}
	m := &pairConfig{
		NumLabels: 2, pairs: c.Architecture == "SiglipModel",
		text:  textConfig{towerConfig: tower, VocabSize: 32000, MaxPositions: 64},
		image: imageConfig{towerConfig: tower, ImageSize: 224, PatchSize: 16, Channels: 3, UseHead: true},
	}
	return readPair(c, m, m)
}

// siglipVision is SiglipVisionModel.
type siglipVision struct {
	*tower
	cfg       *imageConfig
	patches   *torch.Conv2d
	position  *torch.Embedding
	positions *torch.Tensor // position_ids
	norm      *torch.LayerNorm
	head      *siglipHead // nil without
}

func newSigLIPVision(t *torch.Torch, c *imageConfig, r Run) (*siglipVision, error) {
	if err := r.checkImage(c.ImageSize, `{"vision_config": {"image_size": %d}}`); err != nil {
		return nil, err
	}
	h, side := c.HiddenSize, c.ImageSize/c.PatchSize
	m := &siglipVision{cfg: c, patches: t.NewConv2d(c.Channels, h, c.PatchSize, c.PatchSize, 0, true, r.DType)}
	m.position = t.NewEmbedding(side*side, h, r.DType)
	m.positions = t.Buffer(torch.Int64, 1, side*side)
	var err error
	if m.tower, err = newTower(t, &c.towerConfig, r, true); err != nil {
		return nil, err
	}
	m.norm = t.NewLayerNorm(h, r.DType)
	if c.UseHead {
		m.head = newSigLIPHead(t, m.tower)
	}
	initialize(t, m.positions)
	return m, nil
}

// forward is SiglipVisionModel.forward.
func (m *siglipVision) forward(t *torch.Torch, pixels *torch.Tensor) trunkOutput {
	f := t.Enter().In("vision_model")
	hidden := f.Let(m.embedded(t, pixels))
	last := f.Let(m.encode(t, hidden, f.Let(torch.Value{})))
	f.Let(last) // encoder_outputs
	last.Set(t.LayerNorm(last, m.norm))
	pooled := f.Let(torch.Value{})
	if m.head != nil {
		pooled.Set(m.head.forward(t, last))
	}
	out := trunkOutput{hidden: f.Keep(last), pooled: f.Keep(pooled)}
	f.End()
	return out
}

// embedded is SiglipVisionEmbeddings.
func (m *siglipVision) embedded(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("embeddings")
	patches := f.Let(t.Conv2d(torch.Borrow(pixels), m.patches))
	embeddings := f.Let(t.Transpose(t.Flatten(patches, 2), 1, 2))
	embeddings.Set(t.Add(embeddings, t.Embedding(torch.Borrow(m.positions), m.position)))
	return f.Return(embeddings)
}

// siglipHead is SiglipMultiheadAttentionPoolingHead: one learned query looks at
// all patches.
type siglipHead struct {
	tower    *tower
	probe    *torch.Tensor
	in, out  *torch.Linear // of torch.nn.MultiheadAttention
	norm     *torch.LayerNorm
	fc1, fc2 *torch.Linear
}

func newSigLIPHead(t *torch.Torch, m *tower) *siglipHead {
	h, dtype := m.cfg.HiddenSize, m.run.DType
	head := &siglipHead{tower: m, probe: t.Parameter(dtype, 1, 1, h).Named("probe")}
	head.in = &torch.Linear{Weight: t.Parameter(dtype, 3*h, h).Named("in_proj_weight"), Bias: t.Parameter(dtype, 3*h).Named("in_proj_bias")}
	head.out = t.NewLinear(h, h, true, dtype).Named("head.attention.out_proj").Derived()
	t.OwnAfterParts(head.in.Weight, head.in.Bias)
	head.norm = t.NewLayerNorm(h, dtype)
	head.fc1 = t.NewLinear(h, m.cfg.IntermediateSize, true, dtype).Named("head.mlp.fc1")
	head.fc2 = t.NewLinear(m.cfg.IntermediateSize, h, true, dtype).Named("head.mlp.fc2")
	t.OwnAfterParts(head.probe)
	return head
}

func (m *siglipHead) forward(t *torch.Torch, input *torch.Var) torch.Value {
	f := t.Enter().In("head")
	hidden := f.Let(input)
	probe := f.Let(t.RepeatRows(torch.Borrow(m.probe), input.Tensor().Dim(0)))
	attended, weights := m.attention(t, probe, hidden)
	t.Drop(weights) // self.attention(...)[0]
	hidden.Set(attended)
	residual := f.Let(hidden)
	hidden.Set(t.LayerNorm(hidden, m.norm))
	hidden.Set(t.Add(residual, m.tower.feedForward(t, m.fc1, m.fc2, hidden)))
	return f.Return(t.Select(hidden, 1))
}

// attention is torch.nn.MultiheadAttention of a query that is not the key: keys
// and values are projected in one, and the weights are averaged over the heads
// (torch/nn/functional.py, multi_head_attention_forward).
func (m *siglipHead) attention(t *torch.Torch, probe, hidden *torch.Var) (out, weights torch.Value) {
	outer := t.Enter().In("attention")
	query := outer.Let(t.Transpose(probe, 1, 0))
	key := outer.Let(t.Transpose(hidden, 1, 0))
	f := t.Enter()
	length, b, size := key.Tensor().Dim(0), key.Tensor().Dim(1), m.tower.cfg.HiddenSize
	heads := m.tower.cfg.Heads
	first, second, third := m.project(t, query, key)
	q, k, v := f.Let(first), f.Let(second), f.Let(third)
	split := func(x *torch.Var, length int64) { x.Set(t.Transpose(t.View(x, length, b*heads, size/heads), 0, 1)) }
	split(q, 1)
	split(k, length)
	split(v, length)
	scaled := f.Let(t.Scale(q))
	scores := f.Let(t.BMM(scaled, t.Transpose(k, -2, -1)))
	scores.Set(t.Softmax(scores, torch.NoDType))
	attended := f.Let(t.BMM(scores, v))
	attended.Set(t.View(t.Contiguous(t.Transpose(attended, 0, 1)), b, size))
	// The function takes the weights of out_proj, and not the module: adapters
	// around it are not asked.
	attended.Set(t.Linear(attended, &torch.Linear{Weight: m.out.Weight, Bias: m.out.Bias}))
	attended.Set(t.View(attended, 1, b, size))
	scores.Set(t.View(scores, b, heads, 1, length))
	scores.Set(t.MeanOver(scores, 1))
	out, weights = f.Keep(attended), f.Keep(scores)
	f.End()
	out = t.Transpose(out, 1, 0)
	outer.End()
	return out, weights
}

// project is _in_projection_packed of an attention whose keys are its values.
func (m *siglipHead) project(t *torch.Torch, query, key *torch.Var) (q, k, v torch.Value) {
	f := t.Enter()
	size := m.tower.cfg.HiddenSize
	weights := t.SplitSizes(torch.Borrow(m.in.Weight), 0, size, 2*size)
	wq, wkv := f.Let(weights[0]), f.Let(weights[1])
	biases := t.SplitSizes(torch.Borrow(m.in.Bias), 0, size, 2*size)
	bq, bkv := f.Let(biases[0]), f.Let(biases[1])
	projected := f.Let(t.Linear(query, &torch.Linear{Weight: wq.Tensor(), Bias: bq.Tensor()}))
	both := f.Let(t.Linear(key, &torch.Linear{Weight: wkv.Tensor(), Bias: bkv.Tensor()}))
	length, b := key.Tensor().Dim(0), key.Tensor().Dim(1)
	parts := t.Unsqueeze(t.View(both, length, b, 2, size), 0)
	both.Set(t.Contiguous(t.Squeeze(t.Transpose(parts, 0, -2), -2)))
	q, k, v = f.Keep(projected), t.Select(both, 0), t.Select(both, 0)
	f.End()
	return q, k, v
}

// siglip is SiglipModel.
type siglip struct {
	text        *textTower
	textHead    *torch.Linear
	vision      *siglipVision
	scale, bias *torch.Tensor // logit_scale, logit_bias
}

func newSigLIP(t *torch.Torch, c *pairConfig, r Run) (*Model, error) {
	m := &siglip{}
	var err error
	if m.text, err = newTextTower(t, &c.text, r, true); err != nil {
		return nil, err
	}
	size := cmp.Or(c.text.ProjectionSize, &c.text.HiddenSize)
	m.textHead = t.NewLinear(c.text.HiddenSize, *size, true, r.DType).Named("text_model.head")
	initialize(t, m.text.positions)
	if m.vision, err = newSigLIPVision(t, &c.image, r); err != nil {
		return nil, err
	}
	if m.vision.head == nil || *size != c.image.HiddenSize {
		return nil, fmt.Errorf("config: texts become %d numbers and images %d; both must be the same", *size, c.image.HiddenSize)
	}
	m.scale, m.bias = t.Parameter(r.DType, 1).Named("logit_scale").OddDecay(), t.Parameter(r.DType, 1).Named("logit_bias")
	t.ListBefore(m.scale, m.text.embed.Weight)
	t.ListBefore(m.bias, m.text.embed.Weight)
	return &Model{Forward: m.forward}, nil
}

// encodeText is SiglipTextModel.forward: the last token stands for the text.
func (m *siglip) encodeText(t *torch.Torch, batch *Batch) trunkOutput {
	f := t.Enter().In("text_model")
	_, last := m.text.forward(t, f, batch)
	pooled := f.Let(t.Select(last, 1))
	pooled.Set(t.In("head", func() torch.Value { return t.Linear(pooled, m.textHead) }))
	out := trunkOutput{hidden: f.Keep(last), pooled: f.Keep(pooled)}
	f.End()
	return out
}

func (m *siglip) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	visual, text := m.vision.forward(t, batch.Pixels), m.encodeText(t, batch)
	images, texts := f.Let(visual.pooled.Borrow()), f.Let(text.pooled.Borrow())
	images.Set(t.Quotient(images, t.NormLast(images)))
	texts.Set(t.Quotient(texts, t.NormLast(texts)))
	perText := f.Let(t.MatMul(texts, t.Transpose(images, 0, 1)))
	perText.Set(t.Add(t.Mul(perText, t.Exp(torch.Borrow(m.scale))), torch.Borrow(m.bias)))
	perImage := f.Let(t.Transpose(perText, 0, 1))
	loss := f.Let(torch.Value{})
	n := perText.Tensor().Dim(0)
	eye := f.Let(t.Full(torch.Float32, n, n))
	signs := f.Let(t.Add(t.Neg(t.FullLike(perText)), t.Scale(eye)))
	likelihood := f.Let(t.LogSigmoid(t.Mul(signs, perText)))
	negative := f.Let(t.Neg(t.Sum(likelihood, 1)))
	loss.Set(t.Mean(negative))
	out := Output{
		Loss: f.Keep(loss), Logits: f.Keep(perImage),
		Rest: []torch.Value{f.Keep(perText), f.Keep(texts), f.Keep(images), text.hidden, text.pooled, visual.hidden, visual.pooled},
	}
	f.End()
	return out
}

func newSigLIPClassifier(t *torch.Torch, c *pairConfig, r Run) (*Model, error) {
	vision, err := newSigLIPVision(t, &c.image, r)
	if err != nil {
		return nil, err
	}
	classifier := t.NewLinear(c.image.HiddenSize, c.NumLabels, true, r.DType).Named("classifier")
	// SiglipForImageClassification.forward: the mean of the patches.
	return &Model{Forward: func(t *torch.Torch, batch *Batch) Output {
		f := t.Enter()
		sequence := vision.forward(t, batch.Pixels).let(f)
		mean := f.Let(t.MeanOver(sequence, 1))
		scores := t.In("classifier", func() torch.Value { return t.Linear(mean, classifier) })
		return classified(t, f, scores, batch)
	}}, nil
}
