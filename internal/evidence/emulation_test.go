package evidence

import (
	"fmt"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
	"memorymark/internal/workload/workloadtest"
)

// TestEmulations holds what is stated to the table of the documentation.
func TestEmulations(t *testing.T) {
	text := testmachine.ReadFile(t, "../../docs/how-emulation-works.md")
	for _, h := range Emulations {
		row := fmt.Sprintf(" | %d | %d | %d | %s | %s | %d |\n", h.Processes, h.Processes, h.Exact, h.Most95, h.Worst, h.Reserved)
		if !strings.Contains(string(text), row) || !strings.Contains(string(text), "| "+h.What) {
			t.Errorf("the table has no row %q of %q", row, h.What)
		}
	}
}

// TestEmulationAccuracy says more of a card and a version than was tried.
func TestEmulationAccuracy(t *testing.T) {
	card := workloadtest.Card(t, "h200")
	if got := EmulationAccuracy(card.Name, "2.11.0+cu130"); len(got) != 1 {
		t.Errorf("of what was tried: %q", got)
	}
	got := EmulationAccuracy("NVIDIA A10", "2.1.0")
	if len(got) != 2 || got[1] != "Accuracy on the NVIDIA A10 with PyTorch 2.1.0 has not been measured." {
		t.Errorf("of another card and version: %q", got)
	}
}
