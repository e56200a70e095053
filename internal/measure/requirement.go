package measure

import (
	"errors"
	"fmt"
)

// RequirementError says that a package is missing or too old.
type RequirementError struct {
	Package string
	Found   string // its version, "" if it is missing
	Needs   string // the oldest version that will do
	Fix     string // the command that fixes it
	Detail  string // what Python said
}

func (e *RequirementError) Error() string {
	if e.Found != "" {
		return fmt.Sprintf("%s %s is too old: %s or later is needed", e.Package, e.Found, e.Needs)
	}
	return fmt.Sprintf("%s cannot be imported: %s", e.Package, e.Detail)
}

// missing turns the failure of an import into what fixes it.
func missing(p Python, err error) error {
	var f *Failure
	if !errors.As(err, &f) || f.Class != Missing || f.Package == "" {
		return err
	}
	return &RequirementError{Package: f.Package, Detail: f.Message, Fix: p.Path + " -m pip install " + f.Package}
}

// checkVersions reports what is too old.
func checkVersions(p Python, v Versions) error {
	for _, c := range []struct{ name, found, oldest string }{
		{"torch", v.Torch, OldestTorch},
		{"transformers", v.Transformers, OldestTransformers},
	} {
		if c.found != "" && Older(c.found, c.oldest) {
			return &RequirementError{Package: c.name, Found: c.found, Needs: c.oldest, Fix: p.Path + " -m pip install --upgrade " + c.name}
		}
	}
	return nil
}
