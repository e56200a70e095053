package measure

import (
	"os/exec"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// A package that is not there is named, with what installs it; one that is
// there but broken is not.
func TestNeededPackage(t *testing.T) {
	for script, want := range map[string]string{
		"sys.modules['peft'] = None; adapters.need('peft', 'an adapter')":                            "an adapter needs peft, which is not installed: /",
		"sys.path.insert(0, '../testdata/broken'); adapters.need('memorymark_broken', 'an adapter')": "No module named 'memorymark_absent'",
	} {
		run := exec.Command(testmachine.Python(t), "-c", "import sys; from memorymark_prober import adapters; "+script)
		run.Dir = "prober"
		out, err := run.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s", script, err, out)
		}
	}
}
