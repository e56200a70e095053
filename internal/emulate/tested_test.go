package emulate

import (
	"fmt"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// TestTestedVersions holds the documents to what make test-versions recorded.
func TestTestedVersions(t *testing.T) {
	doc := testmachine.ReadFile(t, "../../docs/how-emulation-works.md")
	for _, v := range TestedVersions() {
		row := fmt.Sprintf("| %s | %s | %s | %s | %d of %d |", v.Torch, v.CUDA, v.CuDNN, v.Transformers, len(v.Answered), v.Programs())
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/how-emulation-works.md does not have the row\n%s", row)
		}
		if len(v.Missing) > 0 {
			t.Errorf("PyTorch %s needs entry points that the library does not have: %s", v.Torch, strings.Join(v.Missing, ", "))
		}
	}
}

func TestFindTested(t *testing.T) {
	if v, ok := FindTested("2.11.1+cu130"); !ok || Minor(v.Torch) != "2.11" {
		t.Errorf("2.11.1+cu130 is found as %q, %t", v.Torch, ok)
	}
	if v, ok := FindTested("2.1.0"); ok {
		t.Errorf("2.1.0, which nobody tried, is found as %q", v.Torch)
	}
}
