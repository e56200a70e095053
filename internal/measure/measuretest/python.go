// Package measuretest gives tests the Python that they run the prober with.
package measuretest

import (
	"os"
	"testing"
)

// Python returns an interpreter with PyTorch and transformers. `make test` sets
// one up and names it in $MEMORYMARK_TEST_PYTHON; that it works is for the test
// to find out. Without the variable, the test is skipped as not tested.
func Python(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("MEMORYMARK_TEST_PYTHON")
	if path == "" {
		tb.Skip("NOT TESTED: it needs a Python with PyTorch and transformers. " +
			"Run make unit, or name one in MEMORYMARK_TEST_PYTHON.")
	}
	return path
}
