// Package sandboxtest says whether this machine has what tests of confined code
// need.
package sandboxtest

import (
	"errors"
	"testing"

	"memorymark/internal/measure"
	"memorymark/internal/sandbox"
)

// Need skips a test where this system has no sandboxes; that they are sound is tested
// in their own room.
func Need(t *testing.T, python string) {
	t.Helper()
	place, err := measure.NewConfinement(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = place.Remove() }()
	var unsupported *sandbox.UnsupportedError
	if err := place.Check(t.Context(), measure.Python{Path: python}); errors.As(err, &unsupported) {
		t.Skipf("NOT TESTED: %v", err)
	}
}
