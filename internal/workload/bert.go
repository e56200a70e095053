package workload

// Bert is transformers' BertConfig.
type Bert struct {
	VocabSize         int64    `json:"vocab_size"`
	HiddenSize        int64    `json:"hidden_size"`
	Layers            int64    `json:"num_hidden_layers"`
	Heads             int64    `json:"num_attention_heads"`
	IntermediateSize  int64    `json:"intermediate_size"`
	HiddenAct         string   `json:"hidden_act"`
	HiddenDropout     float64  `json:"hidden_dropout_prob"`
	AttentionDropout  float64  `json:"attention_probs_dropout_prob"`
	MaxPositions      int64    `json:"max_position_embeddings"`
	TypeVocabSize     int64    `json:"type_vocab_size"`
	ClassifierDropout *float64 `json:"classifier_dropout"` // nil: hidden_dropout_prob
	NumLabels         int64    `json:"num_labels"`
	TieWordEmbeddings bool     `json:"tie_word_embeddings"`
}

// Bert reads a BERT configuration.
func (c *Config) Bert() (*Bert, error) {
	b := &Bert{
		VocabSize: 30522, HiddenSize: 768, Layers: 12, Heads: 12, IntermediateSize: 3072, HiddenAct: "gelu",
		HiddenDropout: 0.1, AttentionDropout: 0.1, MaxPositions: 512, TypeVocabSize: 2, NumLabels: 2, TieWordEmbeddings: true,
	}
	return b, c.decode(b, "layer_norm_eps", "use_cache", "position_embedding_type", "chunk_size_feed_forward", "gradient_checkpointing")
}

// Roberta reads a RoBERTa configuration, which has BERT's keys.
func (c *Config) Roberta() (*Bert, error) {
	b, err := c.Bert()
	if _, ok := c.keys["vocab_size"]; !ok {
		b.VocabSize = 50265
	}
	return b, err
}
