package workload

import (
	"testing"

	"memorymark/internal/models"
	"memorymark/internal/models/modelstest"
)

func TestVersions(t *testing.T) {
	modelstest.NeedSource(t)
	w, err := Parse([]byte(`{"model": "gpt2", "versions": {"torch": "2.15.0+cu132", "transformers": "5.22.2"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Libraries().String(); got != "PyTorch 2.15 with transformers 5.22" {
		t.Errorf("it runs with %s", got)
	}
	if w, err = Parse([]byte(`{"model": "gpt2"}`)); err != nil || w.Libraries() != models.Reference {
		t.Errorf("without versions it runs with %v, %v", w.Libraries(), err)
	}
}

// TestVersionsUnmodelled: what cannot be predicted can still run.
func TestVersionsUnmodelled(t *testing.T) {
	const asked = `{"model": "gpt2", "versions": {"torch": "2.3"}}`
	if w, err := ParseRunnable([]byte(asked)); err != nil || w.Unmodelled == "" {
		t.Errorf("it cannot run: %v, %v", w, err)
	}
}
