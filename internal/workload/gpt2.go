package workload

import "fmt"

// GPT2 is transformers' GPT2Config.
type GPT2 struct {
	VocabSize         int64   `json:"vocab_size"`
	MaxPositions      int64   `json:"n_positions"`
	HiddenSize        int64   `json:"n_embd"`
	Layers            int64   `json:"n_layer"`
	Heads             int64   `json:"n_head"`
	Inner             *int64  `json:"n_inner"` // nil: four times n_embd
	Activation        string  `json:"activation_function"`
	ResidualDropout   float64 `json:"resid_pdrop"`
	EmbeddingDropout  float64 `json:"embd_pdrop"`
	AttentionDropout  float64 `json:"attn_pdrop"`
	UseCache          bool    `json:"use_cache"`
	TieWordEmbeddings bool    `json:"tie_word_embeddings"`
	ReorderAndUpcast  bool    `json:"reorder_and_upcast_attn"`
	CrossAttention    bool    `json:"add_cross_attention"`
}

// gpt2Names are the names that transformers takes for GPT-2's own
// (GPT2Config.attribute_map).
var gpt2Names = map[string]string{
	"hidden_size": "n_embd", "max_position_embeddings": "n_positions",
	"num_attention_heads": "n_head", "num_hidden_layers": "n_layer",
}

// GPT2 reads a GPT-2 configuration.
func (c *Config) GPT2() (*GPT2, error) {
	g := &GPT2{
		VocabSize: 50257, MaxPositions: 1024, HiddenSize: 768, Layers: 12, Heads: 12, Activation: "gelu_new",
		ResidualDropout: 0.1, EmbeddingDropout: 0.1, AttentionDropout: 0.1, UseCache: true, TieWordEmbeddings: true,
	}
	if err := c.renamed(gpt2Names).decode(g, "layer_norm_epsilon", "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "n_ctx",
		"summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"); err != nil {
		return nil, err
	}
	switch {
	case g.CrossAttention:
		return nil, fmt.Errorf("config: add_cross_attention of a gpt2 is not modelled")
	case g.HiddenSize%g.Heads != 0:
		return nil, fmt.Errorf("config: n_embd is %d, which n_head, %d, does not divide", g.HiddenSize, g.Heads)
	}
	return g, nil
}
