package models

import (
	"fmt"
	"slices"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
)

// llamaConfig is transformers' LlamaConfig, MistralConfig, Qwen2Config or Qwen3Config:
// decoders that differ in biases, in which layers attend through a window, and
// in whether queries and keys are normed.
type llamaConfig struct {
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
	NumLabels         int64           `json:"num_labels"`
	// Of a head that classifies tokens.
	ClassifierDropout *float64 `json:"classifier_dropout"`
	HiddenDropout     *float64 `json:"hidden_dropout"`

	family string // model_type
}

// The kinds of layers in layer_types.
const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
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
	YarnRope    RopeType = "yarn"
)

var ropeTypes = []RopeType{DefaultRope, LinearRope, Llama3Rope, YarnRope}

// readLlama reads a configuration of the Llama, Mistral, Qwen2 or Qwen3 family.
func readLlama(c *hfconfig.Config) (*llamaConfig, error) {
	l := &llamaConfig{Layers: 32, Heads: 32, HiddenSize: 4096, HiddenAct: "silu", UseCache: true, NumLabels: 2}
	window, eight, all, headDim := int64(4096), int64(8), int64(32), int64(128)
	switch c.ModelType {
	case "mistral":
		l.VocabSize, l.IntermediateSize, l.MaxPositions = 32000, 14336, 4096*32
		l.KeyValueHeads, l.SlidingWindow = &eight, &window
	case "qwen2", "qwen3":
		l.VocabSize, l.IntermediateSize, l.MaxPositions = 151936, 22016, 32768
		l.KeyValueHeads, l.SlidingWindow, l.MaxWindowLayers = &all, &window, 28
		if c.ModelType == "qwen3" {
			l.HeadDim = &headDim
		}
	default:
		l.VocabSize, l.IntermediateSize, l.MaxPositions = 32000, 11008, 2048
	}
	return l, l.decode(c)
}

// decode reads a configuration. Keys that say nothing about memory are ignored: numbers in
// formulas, and how texts are generated.
func (l *llamaConfig) decode(c *hfconfig.Config) error {
	l.family = c.ModelType
	if err := c.Decode(l, "rms_norm_eps", "rope_theta", "pretraining_tp", "gradient_checkpointing", "rope_local_base_freq",
		"cache_implementation", "_sliding_window_pattern", "embd_pdrop", "original_max_position_embeddings"); err != nil {
		return err
	}
	if l.HiddenAct != "silu" {
		return fmt.Errorf("config: hidden_act %q of a %s is not modelled", l.HiddenAct, c.ModelType)
	}
	return l.validate(c.ModelType)
}

func (l *llamaConfig) validate(family string) error {
	if err := rotates(l.HeadSize()); err != nil {
		return err
	}
	if rope := l.Rope(); !slices.Contains(ropeTypes, rope) {
		return invalid.At("rope_scaling", fmt.Errorf("config: rope_type of a %s is %q; it must be one of %s", family, rope, "default, linear, llama3, yarn"))
	}
	return nil
}

// rotates checks that the size of a head can be rotated: it has two halves.
func rotates(size int64) error {
	if size < 2 || size%2 != 0 {
		return fmt.Errorf("config: the head size is %d; rotary embeddings need an even one", size)
	}
	return nil
}

// Rope returns the type of the rotary positions.
func (l *llamaConfig) Rope() RopeType {
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
func (l *llamaConfig) Groups() int64 {
	if l.KeyValueHeads == nil {
		return l.Heads
	}
	return *l.KeyValueHeads
}

// HeadSize returns the size of a head.
func (l *llamaConfig) HeadSize() int64 {
	if l.HeadDim == nil {
		return l.HiddenSize / l.Heads
	}
	return *l.HeadDim
}

// IsQwen reports whether the model is Qwen2 or Qwen3, which share most code.
func (l *llamaConfig) IsQwen() bool { return l.family == "qwen2" || l.family == "qwen3" }

// QKVBias reports whether the projections of queries, keys and values have
// biases; Qwen2's have, whatever its configuration says.
func (l *llamaConfig) QKVBias() bool { return l.AttentionBias || l.family == "qwen2" }

// QKNorm reports whether each head of the queries and of the keys is normed.
func (l *llamaConfig) QKNorm() bool { return l.family == "qwen3" }

// MapsMasks reports whether the model makes a dictionary of masks, by the kinds
// of layers, that of full attention always.
func (l *llamaConfig) MapsMasks() bool { return l.IsQwen() }

// Sliding reports whether a layer attends through a window: all of Mistral's
// if it has one, the last ones of Qwen if asked.
func (l *llamaConfig) Sliding(layer int64) bool {
	switch {
	case l.SlidingWindow == nil:
		return false
	case layer < int64(len(l.LayerTypes)):
		return l.LayerTypes[layer] == slidingAttention
	case l.IsQwen():
		return l.UseSlidingWindow && layer >= l.MaxWindowLayers
	default:
		return true
	}
}

func (l *llamaConfig) depth() (layers int64, key string) { return l.Layers, "num_hidden_layers" }

func (l *llamaConfig) kindOf(layer int64) any { return l.Sliding(layer) }

// MasksWindow reports whether the model makes the mask of sliding attention.
func (l *llamaConfig) MasksWindow() bool { return l.countSliding() > 0 }

// MasksAll reports whether the model makes the mask of full attention.
func (l *llamaConfig) MasksAll() bool { return l.MapsMasks() || l.countSliding() < l.Layers }

func (l *llamaConfig) countSliding() (n int64) {
	for i := range l.Layers {
		if l.Sliding(i) {
			n++
		}
	}
	return n
}
