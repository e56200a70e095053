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
// holds in them; the others that it was held to are in its row.
var Reference = Versions{torch.Reference, torch.Version{Major: 5, Minor: 17}}

// Those that families were held to beside it, the newest first.
var (
	newest = Versions{torch.Version{Major: 2, Minor: 15}, torch.Version{Major: 5, Minor: 22}}
	last4  = Versions{torch.Version{Major: 2, Minor: 8}, torch.Version{Major: 4, Minor: 57}} // the last transformers 4
	older4 = Versions{torch.Version{Major: 2, Minor: 6}, torch.Version{Major: 4, Minor: 51}} // without masking_utils.py
)

// CheckVersions reports versions in which a model is not known to take what is
// predicted. Families are held to others than Reference in loops written by hand only:
// more is what else there is to a step, "" for nothing.
func CheckVersions(c *hfconfig.Config, v Versions, more string) error {
	f := familyOf(c.ModelType)
	switch {
	case f == nil || v == Reference:
		return nil
	case more == "" && slices.Contains(f.Except[v], c.Architecture):
		return &UnmodelledError{key: "versions", what: fmt.Sprintf("%s of %v", c.Architecture, v), known: "; it is of " + Reference.String()}
	case more != "" && slices.Contains(f.Versions, v):
		return &UnmodelledError{key: "versions", what: fmt.Sprintf("%s of %v", more, v), known: "; it is of " + Reference.String()}
	case slices.Contains(f.Versions, v):
		return nil
	}
	known := Reference.String()
	for _, v := range f.Versions {
		known += ", " + v.String()
	}
	return &UnmodelledError{key: "versions", what: fmt.Sprintf("%s of %v", c.ModelType, v), known: "; these are: " + known}
}

// EagerAttention is what an exception of a family can be.
const EagerAttention = "eager attention"

// Excepts reports something that is not modelled in versions in which the model's
// family is.
func Excepts(c *hfconfig.Config, v Versions, what string) bool {
	f := familyOf(c.ModelType)
	return f != nil && slices.Contains(f.Except[v], what)
}
