package workload

import "errors"

// DistilBert is transformers' DistilBertConfig.
type DistilBert struct {
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
	NumLabels         int64   `json:"num_labels"`

	Sinusoidal bool  `json:"sinusoidal_pos_embds"`
	ChunkSize  int64 `json:"chunk_size_feed_forward"`
}

// DistilBert reads a DistilBERT configuration.
func (c *Config) DistilBert() (*DistilBert, error) {
	d := &DistilBert{
		VocabSize: 30522, MaxPositions: 512, Layers: 6, Heads: 12, Dim: 768, HiddenDim: 3072, Dropout: 0.1, AttentionDropout: 0.1,
		Activation: "gelu", ClassifierDropout: 0.2, NumLabels: 2,
	}
	names := map[string]string{"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
	if err := c.renamed(names).decode(d, "qa_dropout", "tie_word_embeddings", "tie_weights_", "output_past"); err != nil {
		return nil, err
	}
	if d.Sinusoidal {
		return nil, errors.New("config: sinusoidal_pos_embds is not modelled")
	}
	return d, checkEncoder(d.NumLabels, d.ChunkSize, d.Dropout, d.AttentionDropout, d.ClassifierDropout)
}
