package models

import (
	"errors"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var distilBertFamily = Family{
	Type: "distilbert", Versions: []Versions{newest, last4, older4}, read: reads(readDistilBert),
	Heads: []Head{
		head("DistilBertForSequenceClassification", Classes, newDistilBert),
		head("DistilBertForTokenClassification", TokenTags, newDistilBertTokens),
		head("DistilBertForQuestionAnswering", Spans, newDistilBertSpans),
		head("DistilBertForMaskedLM", SameIDs, newDistilBertMaskedLM),
		head("DistilBertModel", NoLabels, newDistilBertAlone),
	},
}

// distilBertConfig is transformers' DistilBertConfig.
type distilBertConfig struct {
	VocabSize         int64   `json:"vocab_size"`
	MaxPositions      int64   `json:"max_position_embeddings"`
	Layers            int64   `json:"n_layers"`
	Heads             int64   `json:"n_heads"`
	Dim               int64   `json:"dim"`
	HiddenDim         int64   `json:"hidden_dim"`
	Dropout           float64 `json:"dropout"`
	AttentionDropout  float64 `json:"attention_dropout"`
	Activation        string  `json:"activation"`
	ClassifierDropout float64 `json:"seq_classif_dropout"`
	AnswerDropout     float64 `json:"qa_dropout"`
	TieWordEmbeddings bool    `json:"tie_word_embeddings"`
	NumLabels         int64   `json:"num_labels"`

	Sinusoidal bool  `json:"sinusoidal_pos_embds"`
	ChunkSize  int64 `json:"chunk_size_feed_forward"`
}

func (c *distilBertConfig) positions() (most int64, key string) {
	return c.MaxPositions, "max_position_embeddings"
}

// readDistilBert reads a DistilBERT configuration.
func readDistilBert(c *hfconfig.Config) (*distilBertConfig, error) {
	d := &distilBertConfig{
		VocabSize: 30522, MaxPositions: 512, Layers: 6, Heads: 12, Dim: 768, HiddenDim: 3072, Dropout: 0.1, AttentionDropout: 0.1,
		Activation: "gelu", ClassifierDropout: 0.2, AnswerDropout: 0.1, TieWordEmbeddings: true, NumLabels: 2,
	}
	names := map[string]string{"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
	if err := c.Renamed(names).Decode(d, "tie_weights_", "output_past"); err != nil {
		return nil, err
	}
	if d.Sinusoidal {
		return nil, errors.New("config: sinusoidal_pos_embds is not modelled")
	}
	return d, checkEncoder(d.NumLabels, d.ChunkSize, d.Dropout, d.AttentionDropout, d.ClassifierDropout, d.AnswerDropout)
}

// This file is DistilBertModel and its heads
// (transformers/models/distilbert/modeling_distilbert.py).

type distilBert struct {
	*encoding
	name           string // what the head calls the model, "" without one
	word, position *torch.Embedding
	norm           *torch.LayerNorm
	positionIDs    *torch.Tensor
	layers         []layer
}

// distilBertLayer is TransformerBlock.
type distilBertLayer struct {
	*encoding
	query, key, value, out *torch.Linear
	attentionNorm          *torch.LayerNorm
	lin1, lin2             *torch.Linear
	outputNorm             *torch.LayerNorm
}

// newDistilBertModel makes DistilBertModel.
func newDistilBertModel(t *torch.Torch, c *distilBertConfig, r Run) (*distilBert, error) {
	e, err := newEncoding(&bertConfig{
		HiddenSize: c.Dim, Heads: c.Heads, HiddenAct: c.Activation, HiddenDropout: c.Dropout, AttentionDropout: c.AttentionDropout,
	}, r)
	if err != nil {
		return nil, err
	}
	e.encoder = "transformer"
	if e.eagerly != nil {
		e.eagerly, e.returnsWeights = e.eagerDistilBert4, false
	}
	m := &distilBert{
		encoding:    e,
		name:        "distilbert",
		word:        t.NewEmbedding(c.VocabSize, c.Dim, r.DType).AsInput("word_embeddings"),
		position:    t.NewEmbedding(c.MaxPositions, c.Dim, r.DType),
		norm:        t.NewLayerNorm(c.Dim, r.DType),
		positionIDs: t.Buffer(torch.Int64, 1, c.MaxPositions),
	}
	for range c.Layers {
		l := &distilBertLayer{
			encoding:      e,
			query:         t.NewLinear(c.Dim, c.Dim, true, r.DType).Named("attention.q_lin"),
			key:           t.NewLinear(c.Dim, c.Dim, true, r.DType).Named("attention.k_lin"),
			value:         t.NewLinear(c.Dim, c.Dim, true, r.DType).Named("attention.v_lin"),
			out:           t.NewLinear(c.Dim, c.Dim, true, r.DType).Named("attention.out_lin"),
			attentionNorm: t.NewLayerNorm(c.Dim, r.DType),
			lin1:          t.NewLinear(c.Dim, c.HiddenDim, true, r.DType).Named("ffn.lin1"),
			lin2:          t.NewLinear(c.HiddenDim, c.Dim, true, r.DType).Named("ffn.lin2"),
			outputNorm:    t.NewLayerNorm(c.Dim, r.DType),
		}
		m.layers = append(m.layers, l.forward)
	}
	e.versions.initPositions(t, c.MaxPositions)
	return m, nil
}

// distilBertClassifier is DistilBertForSequenceClassification.
type distilBertClassifier struct {
	*distilBert
	preClassifier, classifier *torch.Linear
	dropout                   float64
}

func newDistilBert(t *torch.Torch, c *distilBertConfig, r Run) (*Model, error) {
	m, err := newDistilBertModel(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &distilBertClassifier{
		distilBert:    m,
		preClassifier: t.NewLinear(c.Dim, c.Dim, true, r.DType).Named("pre_classifier"),
		classifier:    t.NewLinear(c.Dim, c.NumLabels, true, r.DType).Named("classifier"),
		dropout:       c.ClassifierDropout,
	}
	return &Model{Forward: h.forward}, nil
}

func (m *distilBertClassifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	hidden := m.base(t, batch).let(f)
	pooled := f.Let(firstToken(t, hidden))
	pooled.Set(t.In("pre_classifier", func() torch.Value { return t.Linear(pooled, m.preClassifier) }))
	pooled.Set(t.ReLU(pooled))
	pooled.Set(t.Dropout(pooled, m.dropout, m.train))
	scores := t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) })
	return classified(t, f, scores, batch)
}

func newDistilBertTokens(t *torch.Torch, c *distilBertConfig, r Run) (*Model, error) {
	m, err := newDistilBertModel(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &tokenClassifier{
		trunk: m.base, name: "classifier", classifier: t.NewLinear(c.Dim, c.NumLabels, true, r.DType).Named("classifier"), dropout: c.Dropout, train: r.Train,
	}
	return &Model{Forward: h.forward}, nil
}

func newDistilBertSpans(t *torch.Torch, c *distilBertConfig, r Run) (*Model, error) {
	m, err := newDistilBertModel(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &spanClassifier{trunk: m.base, classifier: t.NewLinear(c.Dim, c.NumLabels, true, r.DType).Named("qa_outputs"), dropout: c.AnswerDropout, train: r.Train}
	return &Model{Forward: h.forward}, nil
}

func newDistilBertAlone(t *torch.Torch, c *distilBertConfig, r Run) (*Model, error) {
	m, err := newDistilBertModel(t, c, r)
	if err != nil {
		return nil, err
	}
	m.name = ""
	return bare(m.base), nil
}

// distilBertMaskedLM is DistilBertForMaskedLM.
type distilBertMaskedLM struct {
	*distilBert
	transform, projector *torch.Linear
	norm                 *torch.LayerNorm
}

func newDistilBertMaskedLM(t *torch.Torch, c *distilBertConfig, r Run) (*Model, error) {
	m, err := newDistilBertModel(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &distilBertMaskedLM{
		distilBert: m,
		transform:  t.NewLinear(c.Dim, c.Dim, true, r.DType).Named("vocab_transform"),
		norm:       t.NewLayerNorm(c.Dim, r.DType),
		projector:  t.NewLinear(c.Dim, c.VocabSize, true, r.DType).AsOutput("vocab_projector"),
	}
	if c.TieWordEmbeddings {
		t.TieBiased(h.projector, m.word)
	}
	return &Model{Forward: h.forward}, nil
}

func (m *distilBertMaskedLM) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	hidden := m.base(t, batch).let(f)
	logits := f.Let(t.In("vocab_transform", func() torch.Value { return t.Linear(hidden, m.transform) }))
	logits.Set(m.act(t, logits))
	logits.Set(t.In("vocab_layer_norm", func() torch.Value { return t.LayerNorm(logits, m.norm) }))
	logits.Set(t.In("vocab_projector", func() torch.Value { return t.Linear(logits, m.projector) }))
	loss := f.Let(torch.Value{})
	if batch.Labels != nil {
		loss.Set(t.In("mlm_loss_fct", func() torch.Value {
			return t.CrossEntropy(t.View(logits, -1, logits.Tensor().Dim(-1)), t.View(torch.Borrow(batch.Labels), -1))
		}))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(logits)}
	f.End()
	return out
}

// base is DistilBertModel.forward.
func (m *distilBert) base(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	mask := f.Let(torch.Value{})
	if m.isOf4() && batch.Mask == nil {
		lookForPadding(t, batch.IDs)
	}
	embedded := f.Let(m.embed(t, batch.IDs))
	if m.isOf4() {
		mask.Set(given4(t, batch))
		if !m.eager {
			mask.Set(sdpaMask4(t, mask, batch, embedded.Tensor().DType))
		}
	} else {
		mask.Set(bidirectionalMask(t, m.padding(batch), embedded, m.eager))
	}
	return trunkOutput{hidden: f.Return(m.encode(t, m.layers, embedded, mask))}
}

func (m *distilBert) embed(t *torch.Torch, ids *torch.Tensor) torch.Value {
	f := t.Enter().In("embeddings")
	inputs := f.Let(t.Embedding(torch.Borrow(ids), m.word))
	positions := f.Let(t.Slice(torch.Borrow(m.positionIDs), 1, 0, ids.Dim(1)))
	positioned := f.Let(t.Embedding(positions, m.position))
	sum := f.Let(t.Add(inputs, positioned))
	sum.Set(t.LayerNorm(sum, m.norm))
	sum.Set(t.Dropout(sum, m.hiddenDropout, m.train))
	return f.Return(sum)
}

func (l *distilBertLayer) forward(t *torch.Torch, hidden, mask *torch.Var) torch.Value {
	f := t.Enter(hidden)
	output, weights := l.selfAttention(t, hidden, mask)
	attended := f.Let(output)
	f.Let(weights) // attention_output, _ = ...
	attended.Set(t.LayerNorm(t.Add(attended, hidden), l.attentionNorm))
	out := f.Let(l.feedForward(t, attended))
	out.Set(t.LayerNorm(t.Add(out, attended), l.outputNorm))
	return f.Return(out)
}

func (l *distilBertLayer) selfAttention(t *torch.Torch, hidden, mask *torch.Var) (out, weights torch.Value) {
	f := t.Enter().In("attention")
	output, weights := l.attend(t, f, hidden, mask, l.query, l.key, l.value)
	output.Set(t.Linear(output, l.out))
	return f.Return(output), weights
}

// feedForward is FFN.
func (l *distilBertLayer) feedForward(t *torch.Torch, attended *torch.Var) torch.Value {
	f := t.Enter().In("ffn")
	x := f.Let(t.Linear(attended, l.lin1))
	x.Set(l.act(t, x))
	x.Set(t.Linear(x, l.lin2))
	x.Set(t.Dropout(x, l.hiddenDropout, l.train))
	return f.Return(x)
}
