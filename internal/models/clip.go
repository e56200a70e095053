package models

import (
	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var clipFamily = Family{
	Type: "clip", Images: true, read: reads(readCLIP),
	Heads: []Head{
		head("CLIPModel", Pairs, newCLIP),
		head("CLIPForImageClassification", Classes, newCLIPClassifier),
	},
}

// clipConfig is transformers' CLIPConfig.
type clipConfig struct {
	ProjectionDim int64 `json:"projection_dim"`
	pairConfig
}

// readCLIP reads a CLIP configuration.
func readCLIP(c *hfconfig.Config) (*clipConfig, error) {
	m := &clipConfig{ProjectionDim: 512, pairConfig: pairConfig{
		NumLabels: 2, pairs: c.Architecture == "CLIPModel",
		text: textConfig{
			towerConfig: towerConfig{HiddenSize: 512, IntermediateSize: 2048, Layers: 12, Heads: 8, HiddenAct: "quick_gelu"},
			VocabSize:   49408, MaxPositions: 77, EndOfText: 49407,
		},
		image: imageConfig{
			towerConfig: towerConfig{HiddenSize: 768, IntermediateSize: 3072, Layers: 12, Heads: 12, HiddenAct: "quick_gelu"},
			ImageSize:   224, PatchSize: 32, Channels: 3,
		},
	}}
	return readPair(c, m, &m.pairConfig)
}

// clipVision is CLIPVisionModel.
type clipVision struct {
	*tower
	cfg       *imageConfig
	class     *torch.Tensor // class_embedding
	patches   *torch.Conv2d
	position  *torch.Embedding
	positions *torch.Tensor // position_ids
	preNorm   *torch.LayerNorm
	postNorm  *torch.LayerNorm
}

func newCLIPVision(t *torch.Torch, c *imageConfig, r Run) (*clipVision, error) {
	if err := r.checkImage(c.ImageSize, `{"vision_config": {"image_size": %d}}`); err != nil {
		return nil, err
	}
	h, side := c.HiddenSize, c.ImageSize/c.PatchSize
	m := &clipVision{cfg: c, class: t.Parameter(r.DType, h).Named("class_embedding").OddDecay()}
	m.patches = t.NewConv2d(c.Channels, h, c.PatchSize, c.PatchSize, 0, false, r.DType)
	m.position = t.NewEmbedding(side*side+1, h, r.DType)
	m.positions = t.Buffer(torch.Int64, 1, side*side+1)
	t.OwnAfterParts(m.class, m.positions)
	m.preNorm = t.NewLayerNorm(h, r.DType)
	var err error
	if m.tower, err = newTower(t, &c.towerConfig, r, false); err != nil {
		return nil, err
	}
	m.postNorm = t.NewLayerNorm(h, r.DType)
	initialize(t, m.positions)
	return m, nil
}

// forward is CLIPVisionModel.forward.
func (m *clipVision) forward(t *torch.Torch, pixels *torch.Tensor) trunkOutput {
	f := t.Enter().In("vision_model")
	hidden := f.Let(m.embedded(t, pixels))
	hidden.Set(t.LayerNorm(hidden, m.preNorm))
	last := f.Let(m.encode(t, hidden, f.Let(torch.Value{})))
	pooled := f.Let(t.Select(last, 1))
	pooled.Set(t.LayerNorm(pooled, m.postNorm))
	out := trunkOutput{hidden: f.Keep(last), pooled: f.Keep(pooled)}
	f.End()
	return out
}

// embedded is CLIPVisionEmbeddings.
func (m *clipVision) embedded(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("embeddings")
	patches := f.Let(t.Conv2d(torch.Borrow(pixels), m.patches))
	patches.Set(t.Transpose(t.Flatten(patches, 2), 1, 2))
	class := f.Let(t.Expand(torch.Borrow(m.class), pixels.Dim(0), 1, -1))
	embeddings := f.Let(t.Cat(1, class, patches))
	embeddings.Set(t.Add(embeddings, t.Embedding(torch.Borrow(m.positions), m.position)))
	return f.Return(embeddings)
}

// clip is CLIPModel.
type clip struct {
	text               *textTower
	vision             *clipVision
	visualProjection   *torch.Linear
	textProjection     *torch.Linear
	scale              *torch.Tensor // logit_scale
	endOfTextIsHighest bool
}

func newCLIP(t *torch.Torch, c *clipConfig, r Run) (*Model, error) {
	m := &clip{endOfTextIsHighest: c.text.EndOfText == float64(2)}
	var err error
	if m.text, err = newTextTower(t, &c.text, r, false); err != nil {
		return nil, err
	}
	initialize(t, m.text.positions)
	if m.vision, err = newCLIPVision(t, &c.image, r); err != nil {
		return nil, err
	}
	m.visualProjection = t.NewLinear(c.image.HiddenSize, c.ProjectionDim, false, r.DType).Named("visual_projection")
	m.textProjection = t.NewLinear(c.text.HiddenSize, c.ProjectionDim, false, r.DType).Named("text_projection")
	m.scale = t.Parameter(r.DType).Named("logit_scale").OddDecay()
	t.ListBefore(m.scale, m.text.embed.Weight)
	return &Model{Forward: m.forward}, nil
}

// imageFeatures is get_image_features.
func (m *clip) imageFeatures(t *torch.Torch, batch *Batch) trunkOutput {
	f := t.Enter()
	out := m.vision.forward(t, batch.Pixels)
	pooled := f.Let(out.pooled)
	out.pooled = t.In("visual_projection", func() torch.Value { return t.Linear(pooled, m.visualProjection) })
	f.End()
	return out
}

// textFeatures is get_text_features.
func (m *clip) textFeatures(t *torch.Torch, batch *Batch) trunkOutput {
	f := t.Enter()
	out := m.encodeText(t, batch)
	pooled := f.Let(out.pooled)
	out.pooled = t.In("text_projection", func() torch.Value { return t.Linear(pooled, m.textProjection) })
	f.End()
	return out
}

// encodeText is CLIPTextModel.forward: the hidden state at the end of the text
// stands for it. Where that is the token 2, the highest token is taken for it.
func (m *clip) encodeText(t *torch.Torch, batch *Batch) trunkOutput {
	f := t.Enter().In("text_model")
	ids, last := m.text.forward(t, f, batch)
	rows := t.Arange(batch.IDs.Dim(0))
	end := t.To(ids, torch.Int32)
	if !m.endOfTextIsHighest {
		end = t.To(t.Compare(end), torch.Int32)
	}
	pooled := f.Let(t.IndexRows(last, rows, t.ArgMaxLast(end)))
	out := trunkOutput{hidden: f.Keep(last), pooled: f.Keep(pooled)}
	f.End()
	return out
}

func (m *clip) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	visual, text := m.imageFeatures(t, batch), m.textFeatures(t, batch)
	images, texts := f.Let(visual.pooled.Borrow()), f.Let(text.pooled.Borrow())
	images.Set(t.Quotient(images, clipNorm(t, images)))
	texts.Set(t.Quotient(texts, clipNorm(t, texts)))
	perText := f.Let(t.MatMul(texts, t.Transpose(images, 0, 1)))
	perText.Set(t.Mul(perText, t.Exp(torch.Borrow(m.scale))))
	perImage := f.Let(t.Transpose(perText, 0, 1))
	loss := f.Let(m.loss(t, perText))
	out := Output{
		Loss: f.Keep(loss), Logits: f.Keep(perImage),
		Rest: []torch.Value{f.Keep(perText), f.Keep(texts), f.Keep(images), text.hidden, text.pooled, visual.hidden, visual.pooled},
	}
	f.End()
	return out
}

// clipNorm is _get_vector_norm.
func clipNorm(t *torch.Torch, x *torch.Var) torch.Value {
	f := t.Enter()
	square := f.Let(t.Pow(x))
	sum := f.Let(t.SumLast(square))
	return f.Return(t.Pow(sum))
}

// loss is image_text_contrastive_loss.
func (m *clip) loss(t *torch.Torch, similarity *torch.Var) torch.Value {
	f := t.Enter()
	contrast := func(logits torch.X) *torch.Var {
		g := t.Enter(logits)
		return f.Let(g.Return(t.CrossEntropy(logits, t.Arange(similarity.Tensor().Dim(0)))))
	}
	captions := contrast(similarity)
	transposed := f.Let(t.Transpose(similarity, 0, 1))
	images := contrast(transposed)
	return f.Return(t.Scale(t.Add(captions, images)))
}

func newCLIPClassifier(t *torch.Torch, c *clipConfig, r Run) (*Model, error) {
	vision, err := newCLIPVision(t, &c.image, r)
	if err != nil {
		return nil, err
	}
	classifier := t.NewLinear(c.image.HiddenSize, c.NumLabels, true, r.DType).Named("classifier")
	// CLIPForImageClassification.forward: the mean of the patches.
	return &Model{Forward: func(t *torch.Torch, batch *Batch) Output {
		f := t.Enter()
		sequence := vision.forward(t, batch.Pixels).let(f)
		mean := f.Let(t.MeanOver(t.Slice(sequence, 1, 1, sequence.Tensor().Dim(1)), 1))
		scores := t.In("classifier", func() torch.Value { return t.Linear(mean, classifier) })
		return classified(t, f, scores, batch)
	}}, nil
}
