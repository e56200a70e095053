package models

import (
	"cmp"
	"math"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

// This file is about families that are not written by hand: their own source is evaluated
// (package pymodule).

// Source has families in addition to those of this package.
type Source interface {
	// Name is what it is the source of, and its version.
	Name() string
	// Family is a model type, nil if the source has none of that name.
	Family(modelType string) *Family
	// ModelType is the type of an architecture, "" if the source has none of that name.
	ModelType(architecture string) string
	// TakesKeywords reports whether forward of a class takes any keyword.
	TakesKeywords(modelType, architecture string, v Versions) bool
	// Read evaluates a configuration.
	Read(c *hfconfig.Config) (Facts, error)
	// New makes a model, as New does.
	New(t *torch.Torch, c *hfconfig.Config, r Run) (*Model, error)
	// Try reports what of a model is not known, without looking at its memory.
	Try(c *hfconfig.Config, r Run) error
}

// Facts are what a configuration says in addition to what its model is made of.
type Facts struct {
	Images       []int64 // what an image has before its height and width: frames, channels; nil for text
	Bins, Frames int64   // of the spectrogram of a sound, 0 for none
	MaxTokens    int64   // 0 for any number
	TokensKey    string  // which says so
	Routes       bool    // tokens to experts
	Layers       []any   // what tells each layer from others, where they are called one after the other
	LayersKey    string  // how many there are
}

// source is asked for families that are not written by hand; nil without one.
var source func() Source

// UseSource says who is asked for families that are not written by hand. It is called
// before anything else.
func UseSource(s func() Source) { source = s }

// HasSource reports whether there is one.
func HasSource() bool { return theSource() != nil }

// theSource is nil if there is none.
func theSource() Source {
	if source == nil {
		return nil
	}
	return source()
}

// EvaluatedFamily is the row of a family of a source.
func EvaluatedFamily(s Source, modelType string, heads []Head) *Family {
	f := &Family{Type: modelType, Heads: heads, evaluated: true, ChannelsLast: true, read: func(c *hfconfig.Config) (any, error) {
		facts, err := s.Read(c)
		return &evaluated{c, facts}, err
	}}
	for i := range f.Heads {
		f.Heads[i].make = func(t *torch.Torch, c any, r Run) (*Model, error) { return s.New(t, c.(*evaluated).config, r) }
	}
	return f
}

// evaluated is the configuration of a family whose source is evaluated.
type evaluated struct {
	config *hfconfig.Config
	facts  Facts
}

func (e *evaluated) positions() (most int64, key string) {
	return cmp.Or(e.facts.MaxTokens, math.MaxInt64), e.facts.TokensKey
}

func (e *evaluated) features() (bins, frames int64) { return e.facts.Bins, e.facts.Frames }

func (e *evaluated) depth() (layers int64, key string) {
	return int64(len(e.facts.Layers)), e.facts.LayersKey
}

func (e *evaluated) kindOf(layer int64) any { return e.facts.Layers[layer] }

// familyOf is the family of a configuration: one that is written by hand, if it has the
// architecture, else one of the source.
func familyOf(c *hfconfig.Config) *Family {
	byHand := familyByHand(c.ModelType)
	if byHand != nil && (c.Architecture == "" || byHand.head(c.Architecture) != nil) {
		return byHand
	}
	s := theSource()
	if s == nil {
		return byHand
	}
	if f := s.Family(c.ModelType); f != nil && (byHand == nil || f.head(c.Architecture) != nil) {
		return f
	}
	return byHand
}

// IsEvaluated reports whether a model is evaluated from its own source.
func IsEvaluated(c *hfconfig.Config) bool {
	f := familyOf(c)
	return f != nil && f.evaluated
}

// Try reports what of a model is not known, where that takes evaluating it.
func Try(c *hfconfig.Config, r Run) error {
	if !IsEvaluated(c) {
		return nil
	}
	if err := theSource().Try(c, r); err != nil {
		return &UnmodelledError{key: "config", what: c.Architecture, because: err}
	}
	return nil
}

// ImageShape is what an image has before its height and width.
func ImageShape(c *hfconfig.Config) []int64 {
	if f := familyOf(c); f != nil && f.evaluated {
		if config, err := f.read(c); err == nil {
			return config.(*evaluated).facts.Images
		}
	}
	return []int64{3}
}
