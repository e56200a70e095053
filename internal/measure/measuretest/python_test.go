package measuretest_test

import (
	"os/exec"
	"testing"

	"memorymark/internal/measure/measuretest"
)

// TestPython fails where the interpreter that was named is of no use, so that
// nobody looks for the reason in the prober.
func TestPython(t *testing.T) {
	out, err := exec.Command(measuretest.Python(t), "-c", "import torch, transformers").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
