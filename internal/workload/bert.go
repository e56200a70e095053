package workload

import "fmt"

// Bert is transformers' BertConfig, and RobertaConfig, which has its keys.
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

	Decoder        bool  `json:"is_decoder"`
	CrossAttention bool  `json:"add_cross_attention"`
	ChunkSize      int64 `json:"chunk_size_feed_forward"`
}

// Bert reads a BERT configuration.
func (c *Config) Bert() (*Bert, error) { return c.bert(30522) }

// Roberta reads a RoBERTa configuration.
func (c *Config) Roberta() (*Bert, error) { return c.bert(50265) }

func (c *Config) bert(vocabulary int64) (*Bert, error) {
	b := &Bert{
		VocabSize: vocabulary, HiddenSize: 768, Layers: 12, Heads: 12, IntermediateSize: 3072, HiddenAct: "gelu",
		HiddenDropout: 0.1, AttentionDropout: 0.1, MaxPositions: 512, TypeVocabSize: 2, NumLabels: 2, TieWordEmbeddings: true,
	}
	err := c.decode(b, "layer_norm_eps", "use_cache", "position_embedding_type", "gradient_checkpointing", "output_past", "directionality",
		"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type")
	if err != nil {
		return nil, err
	}
	if b.Decoder || b.CrossAttention {
		return nil, fmt.Errorf("config: a %s as a decoder is not modelled", c.ModelType)
	}
	return b, checkEncoder(b.NumLabels, b.ChunkSize, b.HiddenDropout, b.AttentionDropout)
}
