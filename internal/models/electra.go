package models

import (
	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var electraFamily = Family{Type: "electra", Versions: []Versions{newest, last4, older4}, read: reads(readElectra), Heads: []Head{
	head("ElectraForSequenceClassification", Classes, newElectra),
	head("ElectraForTokenClassification", TokenTags, newElectraTokens),
	head("ElectraForQuestionAnswering", Spans, newElectraSpans),
	head("ElectraModel", NoLabels, newElectraAlone),
}}

// electraConfig is transformers' ElectraConfig.
type electraConfig struct {
	bertConfig
	EmbeddingSize int64 `json:"embedding_size"`
}

// readElectra reads a configuration.
func readElectra(c *hfconfig.Config) (*electraConfig, error) {
	e := &electraConfig{bertConfig: bertConfig{
		VocabSize: 30522, HiddenSize: 256, Layers: 12, Heads: 4, IntermediateSize: 1024, HiddenAct: "gelu",
		HiddenDropout: 0.1, AttentionDropout: 0.1, MaxPositions: 512, TypeVocabSize: 2, NumLabels: 2, TieWordEmbeddings: true,
	}, EmbeddingSize: 128}
	return e, e.decode(c, e, "summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj")
}

// newElectraModel makes ElectraModel: BERT without a pooler, whose embeddings may
// have a size of their own (transformers/models/electra/modeling_electra.py).
func newElectraModel(t *torch.Torch, c *electraConfig, r Run) (*bertModel, error) {
	of4 := r.Versions.Transformers.Before(5, 0)
	r.Eager = r.Eager || of4 // transformers 4 has no other attention for it
	e, err := newEncoding(&c.bertConfig, r)
	if err != nil {
		return nil, err
	}
	narrow := c.bertConfig
	narrow.HiddenSize = c.EmbeddingSize
	embeddings := newBertEmbeddings(t, &narrow, r.DType)
	embeddings.of4 = of4
	m := &bertModel{encoding: e, name: "electra", embed: embeddings.forward, masksFirst: of4}
	if c.EmbeddingSize != c.HiddenSize {
		projection := t.NewLinear(c.EmbeddingSize, c.HiddenSize, true, r.DType).Named("embeddings_project")
		m.embed = func(t *torch.Torch, ids *torch.Tensor, train bool) torch.Value {
			f := t.Enter()
			output := f.Let(embeddings.forward(t, ids, train))
			output.Set(t.In("embeddings_project", func() torch.Value { return t.Linear(output, projection) }))
			return f.Return(output)
		}
	}
	m.layers = newBertLayers(t, &c.bertConfig, e, r.DType)
	e.versions.initPositions(t, c.MaxPositions)
	return m, nil
}

func newElectra(t *torch.Torch, c *electraConfig, r Run) (*Model, error) {
	m, err := newElectraModel(t, c, r)
	if err != nil {
		return nil, err
	}
	return newRobertaClassifier(t, &c.bertConfig, m.forward, (*torch.Torch).GELU, r), nil
}

func newElectraTokens(t *torch.Torch, c *electraConfig, r Run) (*Model, error) {
	m, err := newElectraModel(t, c, r)
	if err != nil {
		return nil, err
	}
	return newTokenClassifier(t, &c.bertConfig, m.forward, r), nil
}

func newElectraSpans(t *torch.Torch, c *electraConfig, r Run) (*Model, error) {
	m, err := newElectraModel(t, c, r)
	if err != nil {
		return nil, err
	}
	return newSpanClassifier(t, &c.bertConfig, m.forward, r), nil
}

func newElectraAlone(t *torch.Torch, c *electraConfig, r Run) (*Model, error) {
	m, err := newElectraModel(t, c, r)
	if err != nil {
		return nil, err
	}
	m.name = ""
	return bare(m.forward), nil
}
