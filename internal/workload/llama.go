package workload

import "fmt"

// Llama is transformers' LlamaConfig, MistralConfig, Qwen2Config or Qwen3Config:
// decoders that differ in biases, in which layers attend through a window, and
// in whether queries and keys are normed.
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

	family string // model_type
}

// The families of this configuration that are told apart by name.
const (
	qwen2 = "qwen2"
	qwen3 = "qwen3"
)

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

// Llama reads a configuration of the Llama, Mistral, Qwen2 or Qwen3 family.
func (c *Config) Llama() (*Llama, error) {
	l := &Llama{Layers: 32, Heads: 32, HiddenSize: 4096, HiddenAct: "silu", UseCache: true, family: c.ModelType}
	window, eight, all, headDim := int64(4096), int64(8), int64(32), int64(128)
	ignored := []string{"rms_norm_eps", "rope_theta", "pretraining_tp", "gradient_checkpointing"}
	switch c.ModelType {
	case "mistral":
		l.VocabSize, l.IntermediateSize, l.MaxPositions = 32000, 14336, 4096*32
		l.KeyValueHeads, l.SlidingWindow = &eight, &window
	case qwen2, qwen3:
		l.VocabSize, l.IntermediateSize, l.MaxPositions = 151936, 22016, 32768
		l.KeyValueHeads, l.SlidingWindow, l.MaxWindowLayers = &all, &window, 28
		if c.ModelType == qwen3 {
			l.HeadDim = &headDim
		}
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

// IsQwen reports whether the model is Qwen2 or Qwen3, which share most code.
func (l *Llama) IsQwen() bool { return l.family == qwen2 || l.family == qwen3 }

// QKVBias reports whether the projections of queries, keys and values have
// biases; Qwen2's have, whatever its configuration says.
func (l *Llama) QKVBias() bool { return l.AttentionBias || l.family == qwen2 }

// QKNorm reports whether each head of the queries and of the keys is normed.
func (l *Llama) QKNorm() bool { return l.family == qwen3 }

// Sliding reports whether a layer attends through a window: all of Mistral's
// if it has one, the last ones of Qwen if asked.
func (l *Llama) Sliding(layer int64) bool {
	switch {
	case l.SlidingWindow == nil:
		return false
	case layer < int64(len(l.LayerTypes)):
		return l.LayerTypes[layer] == "sliding_attention"
	case l.IsQwen():
		return l.UseSlidingWindow && layer >= l.MaxWindowLayers
	default:
		return true
	}
}

// HasSlidingLayers reports whether a layer attends through a window.
func (l *Llama) HasSlidingLayers() bool { return l.countSliding() > 0 }

// HasFullLayers reports whether the model makes the mask of full attention:
// Qwen always does.
func (l *Llama) HasFullLayers() bool { return l.IsQwen() || l.countSliding() < l.Layers }

func (l *Llama) countSliding() (n int64) {
	for i := range l.Layers {
		if l.Sliding(i) {
			n++
		}
	}
	return n
}
