package workload

import (
	"errors"
	"strings"
)

// T5 is transformers' T5Config.
type T5 struct {
	VocabSize         int64   `json:"vocab_size"`
	ModelSize         int64   `json:"d_model"`
	HeadSize          int64   `json:"d_kv"`
	FeedForwardSize   int64   `json:"d_ff"`
	Layers            int64   `json:"num_layers"`
	DecoderLayers     int64   `json:"num_decoder_layers"` // 0: num_layers
	Heads             int64   `json:"num_heads"`
	Buckets           int64   `json:"relative_attention_num_buckets"`
	Dropout           float64 `json:"dropout_rate"`
	FeedForward       string  `json:"feed_forward_proj"`
	UseCache          bool    `json:"use_cache"`
	TieWordEmbeddings bool    `json:"tie_word_embeddings"` // false: tied all the same, but the outputs are not scaled
}

// Gated reports whether the feed-forward layers have a gate.
func (c *T5) Gated() bool { return strings.HasPrefix(c.FeedForward, "gated-") }

// Activation is the function of the feed-forward layers. "gated-gelu" means
// that by tanh, as the first such models had it.
func (c *T5) Activation() string {
	if c.FeedForward == "gated-gelu" {
		return "gelu_new"
	}
	return strings.TrimPrefix(c.FeedForward, "gated-")
}

// t5Names are the names that transformers takes for T5's own
// (T5Config.attribute_map).
var t5Names = map[string]string{
	"hidden_size": "d_model", "num_attention_heads": "num_heads", "num_hidden_layers": "num_layers", "head_dim": "d_kv",
}

// T5 reads a T5 configuration.
func (c *Config) T5() (*T5, error) {
	m := &T5{
		VocabSize: 32128, ModelSize: 512, HeadSize: 64, FeedForwardSize: 2048, Layers: 6, Heads: 8,
		Buckets: 32, Dropout: 0.1, FeedForward: "relu", UseCache: true, TieWordEmbeddings: true,
	}
	err := c.renamed(t5Names).decode(m, "classifier_dropout", "decoder_start_token_id", "gradient_checkpointing",
		"is_encoder_decoder", "layer_norm_epsilon", "n_positions", "output_past", "relative_attention_max_distance")
	if err != nil {
		return nil, err
	}
	if m.DecoderLayers == 0 {
		m.DecoderLayers = m.Layers
	}
	return m, errors.Join(
		positive("vocab_size", m.VocabSize), positive("d_model", m.ModelSize), positive("d_kv", m.HeadSize),
		positive("d_ff", m.FeedForwardSize), positive("num_layers", m.Layers), positive("num_decoder_layers", m.DecoderLayers),
		positive("num_heads", m.Heads), positive("relative_attention_num_buckets", m.Buckets))
}
