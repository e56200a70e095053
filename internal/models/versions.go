package models

import (
	"fmt"
	"slices"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

// Versions are those of the libraries that a step runs with.
type Versions struct {
	Torch        torch.Version `json:"torch"`
	Transformers torch.Version `json:"transformers"`
}

func (v Versions) String() string {
	return fmt.Sprintf("PyTorch %v with transformers %v", v.Torch, v.Transformers)
}

// Reference are the versions that the files of this package cite. Every family
// holds in them; the others that it was verified against are in its row.
var Reference = Versions{torch.Reference, torch.Version{Major: 5, Minor: 17}}

// Those that families were verified against in addition to it, the newest first.
var (
	newest = Versions{torch.Version{Major: 2, Minor: 15}, torch.Version{Major: 5, Minor: 22}}
	last4  = Versions{torch.Version{Major: 2, Minor: 8}, torch.Version{Major: 4, Minor: 57}} // the last transformers 4
	older4 = Versions{torch.Version{Major: 2, Minor: 6}, torch.Version{Major: 4, Minor: 51}} // without masking_utils.py
)

// recordedIn are the versions other than Reference in which families whose source is evaluated
// were compared with recordings.
var recordedIn = map[string]struct {
	Versions []Versions
	Except   map[Versions][]string
}{
	"bart": {[]Versions{newest}, map[Versions][]string{newest: {"BartForSequenceClassification"}}},
}

// peft is the PEFT that was new with a transformers.
func (v Versions) peft() torch.Version {
	switch {
	case v.Transformers.Before(4, 57):
		return torch.Version{Minor: 15}
	case v.Transformers.Before(5, 0):
		return torch.Version{Minor: 18}
	}
	return torch.Version{Minor: 21}
}

// What a step can have beyond a model and a loop written by hand, in addition to what is
// named by its own words.
const (
	Adapters     = "an adapter"
	DoRA         = "DoRA"
	SavedModules = "modules_to_save"
	Evaluation   = "evaluation" // which can only be an exception
)

// The families whose adapters and loops were recorded with transformers 4.57, and 4.51.
var (
	with457 = []string{
		"bert", "deberta-v2", "distilbert", "electra", "gemma", gemma2, gemma3, "gpt2", "gpt_neox", "llama", "mistral", "olmo2", "opt", phi3Type,
		"qwen2", "qwen3", "roberta", smolLM3, "t5", "vit", "xlm-roberta",
	}
	with451 = []string{
		"bert", "distilbert", "electra", "gemma", gemma2, gemma3, "gpt2", "gpt_neox", "llama", "mistral", "olmo2", phi3Type,
		"qwen2", "qwen3", "roberta", "t5", "xlm-roberta",
	}
)

// beyond are the families that were verified against recordings with more than a model and a
// loop written by hand: adapters of the PEFT, and loops of the Accelerate and the
// Lightning, that were new with a transformers (0.18, 1.12 and 2.6 with 4.57; 0.15, 1.6
// and 2.5 with 4.51).
var beyond = map[Versions]map[string][]string{
	last4: {
		Adapters:            with457,
		DoRA:                with457,
		SavedModules:        {"llama"},
		`loop "trainer"`:    with457,
		`loop "accelerate"`: with457,
		`loop "lightning"`:  with457,
	},
	older4: {
		Adapters:            with451,
		DoRA:                with451,
		`loop "trainer"`:    with451,
		`loop "accelerate"`: with451,
		`loop "lightning"`:  with451,
	},
}

// CheckVersions reports versions in which a model is not known to take what is
// predicted. More is what there is beyond the model and a loop written by hand.
func CheckVersions(c *hfconfig.Config, v Versions, more []string) error {
	f := familyOf(c)
	if f == nil || v == Reference {
		return nil
	}
	if !slices.Contains(f.Versions, v) {
		known := Reference.String()
		for _, v := range f.Versions {
			known += ", " + v.String()
		}
		return &UnmodelledError{key: "versions", what: fmt.Sprintf("%s of %v", c.ModelType, v), known: "; these are: " + known}
	}
	for _, what := range append(more, c.Architecture) {
		if slices.Contains(f.Except[v], what) || what != c.Architecture && what != Evaluation && !slices.Contains(beyond[v][what], f.Type) {
			return &UnmodelledError{key: "versions", what: fmt.Sprintf("%s of %v", what, v), known: "; it is of " + Reference.String()}
		}
	}
	return nil
}
