package models

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

// families are the model types that are modelled, by name. A new one is a file
// with its row, and a line here.
var families = []*Family{
	&bertFamily,
	&clipFamily,
	&gpt2Family,
	&llamaFamily,
	&lmFamily,
	&mistralFamily,
	&qwen2Family,
	&qwen3Family,
	&resnetFamily,
	&siglipFamily,
	&t5Family,
	&torchvisionResNetFamily,
	&vitFamily,
}

// Family is a model type.
type Family struct {
	Type   string // model_type
	Heads  []Head // the first one is meant where a configuration names none
	Images bool   // a batch is pixels, not ids
	// ChannelsLast says that images and weights in channels_last are modelled.
	ChannelsLast bool
	Module       string // of the Python classes; "" is Transformers

	evaluated bool // from its own source
	stages    bool // of a pipeline are modelled
	read      func(*hfconfig.Config) (any, error)
}

// Head is an architecture of a family: its Python class, and what it is
// trained on.
type Head struct {
	Architecture string
	Labels       Labels
	Decodes      bool // takes ids for a decoder where there are no labels to make them of
	ReadsEnds    bool // classifies what is at the end of each text, which it looks for
	// Needs are token ids of the configuration that the Python class cannot do
	// without. Not every configuration has them; they change no memory.
	Needs []string
	// noKeywords is that of a class that is never called with num_items_in_batch.
	noKeywords bool

	make func(t *torch.Torch, config any, r Run) (*Model, error)
}

// Labels is what a batch holds for the model's own loss. The prober takes the
// same names.
type Labels string

// The labels.
const (
	NoLabels  Labels = ""
	Classes   Labels = "classes"    // one for each sample
	TokenTags Labels = "token_tags" // one for each token
	Spans     Labels = "spans"      // the first and the last token of an answer
	SameIDs   Labels = "ids"        // the ids themselves
	TargetIDs Labels = "target_ids" // as many other ids
	Pairs     Labels = "pairs"      // none: a text for each image, which belong together
)

// Transformers is the Python module that has the classes of most families.
const Transformers = "transformers"

// PythonModule is the module that has the classes of the family's heads.
func (f *Family) PythonModule() string { return cmp.Or(f.Module, Transformers) }

// reads is a family's reader of its configuration.
func reads[C any](read func(*hfconfig.Config) (*C, error)) func(*hfconfig.Config) (any, error) {
	return func(c *hfconfig.Config) (any, error) { return read(c) }
}

// head is a row of a family's heads: the class, its labels, its constructor.
func head[C any](architecture string, labels Labels, make func(*torch.Torch, *C, Run) (*Model, error)) Head {
	return Head{
		Architecture: architecture, Labels: labels,
		make: func(t *torch.Torch, config any, r Run) (*Model, error) { return make(t, config.(*C), r) },
	}
}

// decodes is a head with a decoder.
func decodes(h Head) Head {
	h.Decodes = true
	return h
}

// readsEnds is a head that looks for the ends of texts.
func readsEnds(h Head) Head {
	h.ReadsEnds = true
	return h
}

// needs is a head that needs token ids.
func needs(h Head, keys ...string) Head {
	h.Needs = keys
	return h
}

// takesNoKeywords is a head whose forward has no **kwargs, or whose class says accepts_loss_kwargs = False
// (transformers/models/convnext/modeling_convnext.py).
func takesNoKeywords(h Head) Head {
	h.noKeywords = true
	return h
}

// TakesKeywords reports whether a model is called with num_items_in_batch
// (transformers/trainer.py, model_accepts_loss_kwargs).
func TakesKeywords(c *hfconfig.Config, v Versions) bool {
	f, h, err := Find(c)
	if err != nil {
		return false
	}
	if s := theSource(); s != nil && (f.evaluated || v != Reference) {
		return s.TakesKeywords(c.ModelType, c.Architecture, v)
	}
	return !h.noKeywords
}

// UnmodelledError says that a family or an architecture is not modelled, so that
// nothing of it can be predicted. PyTorch may know it all the same.
type UnmodelledError struct {
	key, what, known string
	because          error // what of its source is not known, nil if it has none
}

func (e *UnmodelledError) Error() string { return e.key + ": " + e.Reason() + e.known }

// Reason is the same in short, without what is modelled.
func (e *UnmodelledError) Reason() string {
	if e.because != nil {
		return fmt.Sprintf("%s is not modelled: %v", e.what, e.because)
	}
	if theSource() == nil {
		return e.what + " is not modelled by a program that was built without make models"
	}
	return e.what + " is not modelled"
}

// Settle makes sure that a configuration has a model type and an architecture:
// each says what the other is.
func Settle(c *hfconfig.Config) error {
	if c.ModelType == "" {
		for _, f := range families {
			if f.head(c.Architecture) != nil || strings.HasPrefix(strings.ToLower(c.Architecture), f.Type+"for") {
				c.ModelType = f.Type
			}
		}
	}
	if s := theSource(); s != nil && c.ModelType == "" {
		c.ModelType = s.ModelType(c.Architecture)
	}
	switch f := familyOf(c); {
	case c.ModelType == "" && c.Architecture == "":
		return errors.New("config has no model_type; it" + knownTypes())
	case c.ModelType == "":
		return &UnmodelledError{key: "config", what: fmt.Sprintf("architecture %q", c.Architecture), known: "; its model_type" + knownTypes()}
	case f == nil:
		return unmodelledType(c.ModelType)
	case c.Architecture == "":
		c.Architecture = f.Heads[0].Architecture
	}
	return nil
}

// Find returns the family and the head of a configuration.
func Find(c *hfconfig.Config) (*Family, *Head, error) {
	f := familyOf(c)
	if f == nil {
		return nil, nil, unmodelledType(c.ModelType)
	}
	if h := f.head(c.Architecture); h != nil {
		return f, h, nil
	}
	names := make([]string, len(f.Heads))
	for i, h := range f.Heads {
		names[i] = h.Architecture
	}
	known := fmt.Sprintf("; of %s, these are: %s", f.Type, strings.Join(names, ", "))
	if theSource() == nil {
		known += "; " + withoutSource
	}
	return nil, nil, &UnmodelledError{key: "config", what: fmt.Sprintf("architecture %q", c.Architecture), known: known}
}

// withoutSource says what a user can do who has a program without the source of models.
const withoutSource = "this program was built without the source of transformers, from which it knows more models: run make models, then build it again"

func unmodelledType(name string) error {
	return &UnmodelledError{key: "config", what: fmt.Sprintf("model_type %q", name), known: "; it" + knownTypes()}
}

// knownTypes says which model types there are.
func knownTypes() string {
	known := " must be one of " + familyNames()
	if s := theSource(); s != nil {
		return known + ", or one that " + s.Name() + " has with a head that is trained on tokens, labels or images"
	}
	return known + "; " + withoutSource
}

// positioned is a configuration that limits how long a text is.
type positioned interface {
	positions() (most int64, key string)
}

// MaxTokens is how long a text of a model may be at most.
func MaxTokens(c *hfconfig.Config) int64 {
	if f := familyOf(c); f != nil {
		if config, err := f.read(c); err == nil {
			if table, ok := config.(positioned); ok {
				most, _ := table.positions()
				return most
			}
		}
	}
	return math.MaxInt64
}

// Check reports what is wrong with a configuration: its keys, and samples of
// more tokens than it has positions for.
func Check(c *hfconfig.Config, sequence int64) error {
	f := familyOf(c)
	if f == nil {
		return nil // which Settle has said
	}
	config, err := f.read(c)
	if err != nil {
		return invalid.At("config", err)
	}
	if table, ok := config.(positioned); ok {
		if most, key := table.positions(); sequence > most {
			return invalid.At("sequence", fmt.Errorf("sequence is %d; it must be at most %d because of %s", sequence, most, key))
		}
	}
	return nil
}

// CropsImages reports whether a model is given smaller images than its image_size: DINOv2
// has positions for 518 pixels, interpolates them, and its processor crops to 224.
func CropsImages(c *hfconfig.Config) bool { return strings.HasPrefix(c.ModelType, "dinov2") }

// TakesImages reports whether a batch of a model is images, not tokens.
func TakesImages(c *hfconfig.Config) bool {
	f := familyOf(c)
	return f != nil && (f.Images || f.evaluated && ImageShape(c) != nil)
}

// ReadsEnds reports whether a model classifies what is at the end of each text.
func ReadsEnds(c *hfconfig.Config) bool {
	_, head, err := Find(c)
	return err == nil && head.ReadsEnds
}

// RoutesTokens reports whether tokens go to some of many experts, by numbers that are not
// known beforehand.
func RoutesTokens(c *hfconfig.Config) bool {
	f := familyOf(c)
	if f == nil || !f.evaluated {
		return false
	}
	config, err := f.read(c)
	return err == nil && config.(*evaluated).facts.Routes
}

// Features are what a sample of a model of sound is in addition to its labels: bins of a
// spectrogram, and how many of them there are; none of other models.
func Features(c *hfconfig.Config) (bins, frames int64) {
	if f := familyOf(c); f != nil {
		if config, err := f.read(c); err == nil {
			if sound, ok := config.(interface{ features() (bins, frames int64) }); ok {
				return sound.features()
			}
		}
	}
	return 0, 0
}

func (f *Family) head(architecture string) *Head {
	for i := range f.Heads {
		if f.Heads[i].Architecture == architecture {
			return &f.Heads[i]
		}
	}
	return nil
}

func familyByHand(modelType string) *Family {
	for _, f := range families {
		if f.Type == modelType {
			return f
		}
	}
	return nil
}

func familyNames() string {
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.Type
	}
	return strings.Join(names, ", ")
}
