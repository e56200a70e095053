package workload

import "fmt"

// Llama is transformers' LlamaConfig, MistralConfig or Qwen2Config: decoders
// that differ in biases and in which layers attend through a window.
type Llama struct {
	VocabSize         int64           `json:"vocab_size"`
	HiddenSize        int64           `json:"hidden_size"`
	IntermediateSize  int64           `json:"intermediate_size"`
	Layers            int64           `json:"num_hidden_layers"`
	Heads             int64           `json:"num_attention_heads"`
	KeyValueHeads     *int64          `json:"num_key_value_heads"` // nil: as many as heads
	HeadDim           *int64          `json:"head_dim"`            // nil: hidden_size / num_attention_heads
	HiddenAct         string          `json:"hidden_act"`
	AttentionBias     bool            `json:"attention_bias"`
	MLPBias           bool            `json:"mlp_bias"`
	AttentionDropout  float64         `json:"attention_dropout"`
	TieWordEmbeddings bool            `json:"tie_word_embeddings"`
	UseCache          bool            `json:"use_cache"`
	SlidingWindow     *int64          `json:"sliding_window"`
	UseSlidingWindow  bool            `json:"use_sliding_window"`
	MaxWindowLayers   int64           `json:"max_window_layers"`
	LayerTypes        []string        `json:"layer_types"`
	RopeScaling       *RopeParameters `json:"rope_scaling"`
	RopeParameters    *RopeParameters `json:"rope_parameters"`
	MaxPositions      int64           `json:"max_position_embeddings"`

	qwen2 bool
}

// RopeParameters are what of the rotary positions says something about memory:
// which function computes the frequencies.
type RopeParameters struct {
	Type    RopeType `json:"rope_type"`
	OldType RopeType `json:"type"`
}

// RopeType is a key of ROPE_INIT_FUNCTIONS.
type RopeType string

// The types of rotary positions.
const (
	DefaultRope RopeType = "default"
	LinearRope  RopeType = "linear"
	Llama3Rope  RopeType = "llama3"
)

// Llama reads a configuration of the Llama, Mistral or Qwen2 family.
func (c *Config) Llama() (*Llama, error) {
	l := &Llama{Layers: 32, Heads: 32, HiddenSize: 4096, HiddenAct: "silu", UseCache: true}
	window, eight, all := int64(4096), int64(8), int64(32)
	ignored := []string{"rms_norm_eps", "rope_theta", "pretraining_tp", "gradient_checkpointing"}
	switch c.ModelType {
	case "mistral":
		l.VocabSize, l.IntermediateSize, l.MaxPositions = 32000, 14336, 4096*32
		l.KeyValueHeads, l.SlidingWindow = &eight, &window
	case "qwen2":
		l.VocabSize, l.IntermediateSize, l.MaxPositions = 151936, 22016, 32768
		l.KeyValueHeads, l.SlidingWindow, l.MaxWindowLayers, l.qwen2 = &all, &window, 28, true
	default:
		l.VocabSize, l.IntermediateSize, l.MaxPositions = 32000, 11008, 2048
	}
	if err := c.decode(l, ignored...); err != nil {
		return nil, err
	}
	return l, l.validate(c.ModelType)
}

func (l *Llama) validate(family string) error {
	if l.HiddenAct != "silu" {
		return fmt.Errorf("config: hidden_act %q of a %s is not modelled", l.HiddenAct, family)
	}
	if err := rotates(l.HeadSize()); err != nil {
		return err
	}
	return at("rope_scaling", oneOf("config: rope_type of a "+family, string(l.Rope()), names(DefaultRope, LinearRope, Llama3Rope)))
}

// rotates checks that the size of a head can be rotated: it has two halves.
func rotates(size int64) error {
	if size < 2 || size%2 != 0 {
		return fmt.Errorf("config: the heads are of size %d; rotary positions need an even one", size)
	}
	return nil
}

// Rope returns the type of the rotary positions.
func (l *Llama) Rope() RopeType {
	for _, r := range []*RopeParameters{l.RopeParameters, l.RopeScaling} {
		switch {
		case r == nil:
		case r.Type != "":
			return r.Type
		case r.OldType != "":
			return r.OldType
		}
	}
	return DefaultRope
}

// Groups returns the heads of keys and values.
func (l *Llama) Groups() int64 {
	if l.KeyValueHeads == nil {
		return l.Heads
	}
	return *l.KeyValueHeads
}

// HeadSize returns the size of a head.
func (l *Llama) HeadSize() int64 {
	if l.HeadDim == nil {
		return l.HiddenSize / l.Heads
	}
	return *l.HeadDim
}

// IsQwen2 reports whether the model is of that family.
func (l *Llama) IsQwen2() bool { return l.qwen2 }

// QKVBias reports whether the projections of queries, keys and values have
// biases; Qwen2's have, whatever its configuration says.
func (l *Llama) QKVBias() bool { return l.AttentionBias || l.qwen2 }

// Sliding reports whether a layer attends through a window: all of Mistral's
// if it has one, the last ones of Qwen2 if asked.
func (l *Llama) Sliding(layer int64) bool {
	switch {
	case l.SlidingWindow == nil:
		return false
	case layer < int64(len(l.LayerTypes)):
		return l.LayerTypes[layer] == "sliding_attention"
	case l.qwen2:
		return l.UseSlidingWindow && layer >= l.MaxWindowLayers
	default:
		return true
	}
}

// HasSlidingLayers reports whether a layer attends through a window.
func (l *Llama) HasSlidingLayers() bool { return l.countSliding() > 0 }

// HasFullLayers reports whether the model makes the mask of full attention:
// Qwen2 always does.
func (l *Llama) HasFullLayers() bool { return l.qwen2 || l.countSliding() < l.Layers }

func (l *Llama) countSliding() (n int64) {
	for i := range l.Layers {
		if l.Sliding(i) {
			n++
		}
	}
	return n
}
