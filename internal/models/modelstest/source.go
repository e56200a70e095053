// Package modelstest says which tests need the source of models (make models).
package modelstest

import (
	"errors"
	"testing"

	"memorymark/internal/models"
)

// NeedSource skips a test of models that are evaluated from their own source, in a build
// without it.
func NeedSource(tb testing.TB) {
	tb.Helper()
	if !models.HasSource() {
		tb.Skip("NOT TESTED: this build has no source of models; make models fetches it")
	}
}

// NeedSourceFor skips a test of one model that is not known, in a build without source.
func NeedSourceFor(tb testing.TB, err error) {
	tb.Helper()
	if unmodelled := new(models.UnmodelledError); errors.As(err, &unmodelled) {
		NeedSource(tb)
	}
}
