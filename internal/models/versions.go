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

// recordedIn are the versions other than Reference in which families were compared with
// recordings. Their source of these versions is evaluated, also of families that are
// written by hand,
// but for what is another in some: Evaluation, or architectures.
var recordedIn = map[string]recorded{
	"bart":        {[]Versions{newest}, map[Versions][]string{newest: {"BartForSequenceClassification"}}},
	"bert":        {in: everywhere},
	"deberta-v2":  {in: before5},
	"distilbert":  {in: everywhere},
	"electra":     {in: everywhere},
	"gemma":       {in: before5},
	"gemma2":      {before5, map[Versions][]string{older4: {Evaluation}}},                                        // whose cache is a HybridCache
	"gemma3_text": {before5, map[Versions][]string{older4: {Evaluation, "Gemma3TextForSequenceClassification"}}}, // which it does not have
	"gpt2":        {in: everywhere},
	"gpt_neox":    {in: everywhere},
	"llama":       {in: everywhere},
	"mistral":     {everywhere, map[Versions][]string{older4: {"MistralForQuestionAnswering"}}},
	"olmo2":       {everywhere, map[Versions][]string{last4: {"Olmo2ForSequenceClassification"}, older4: {"Olmo2ForSequenceClassification"}}}, // which they lack
	"opt":         {in: everywhere},
	"phi3":        {in: everywhere},
	"qwen2":       {in: everywhere},
	"qwen3":       {in: everywhere},
	"roberta":     {in: everywhere},
	"smollm3":     {in: []Versions{newest, last4}},
	"t5":          {before5, map[Versions][]string{last4: {"T5ForSequenceClassification"}, older4: {"T5ForSequenceClassification"}}},
	"vit":         {in: []Versions{last4}},
	"xlm-roberta": {in: everywhere},
}

type recorded struct {
	in     []Versions
	except map[Versions][]string
}

var (
	before5    = []Versions{last4, older4}
	everywhere = []Versions{newest, last4, older4}
)

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
		"bert", "deberta-v2", "distilbert", "electra", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "llama", "mistral", "olmo2", "opt", "phi3",
		"qwen2", "qwen3", "roberta", "smollm3", "t5", "vit", "xlm-roberta",
	}
	with451 = []string{
		"bert", "distilbert", "electra", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "llama", "mistral", "olmo2", "phi3",
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
	if familyOf(c) == nil || v == Reference {
		return nil
	}
	compared := recordedIn[c.ModelType]
	if !slices.Contains(compared.in, v) {
		known := Reference.String()
		for _, v := range compared.in {
			known += ", " + v.String()
		}
		return &UnmodelledError{key: "versions", what: fmt.Sprintf("%s of %v", c.ModelType, v), known: "; these are: " + known}
	}
	if theSource() == nil {
		return &UnmodelledError{key: "versions", what: fmt.Sprintf("%s of %v", c.ModelType, v), known: "; " + withoutSource}
	}
	for _, what := range append(more, c.Architecture) {
		if slices.Contains(compared.except[v], what) || what != c.Architecture && what != Evaluation && !slices.Contains(beyond[v][what], c.ModelType) {
			return &UnmodelledError{key: "versions", what: fmt.Sprintf("%s of %v", what, v), known: "; it is of " + Reference.String()}
		}
	}
	return nil
}

// CachesTuples reports whether a model returns its cache as tuples of tensors.
func CachesTuples(c *hfconfig.Config, v Versions) bool {
	return v.Transformers.Before(4, 57) && slices.Contains([]string{"gpt2", "opt", "t5"}, c.ModelType)
}
