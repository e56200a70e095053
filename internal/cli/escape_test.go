package cli

import (
	"errors"
	"strings"
	"testing"

	"memorymark/internal/analysis"
	"memorymark/internal/measure"
)

// What goes to a file or a pipe has no escape codes, on standard error neither.
func TestNoEscapeCodesOnStderr(t *testing.T) {
	var stderr strings.Builder
	e := &env{stdout: &strings.Builder{}, stderr: &stderr}
	early := &analysis.UnfinishedError{
		Probes: []analysis.Probe{{Outcome: measure.Outcome{Batch: 8}, Success: true, Purpose: "confirm"}}, Err: errors.New("out of probes"),
	}
	err := (&analyzeFlags{}).explain(e, early)
	printError(&stderr, err)
	if got := stderr.String(); !strings.Contains(got, "confirm") || strings.Contains(got, "\x1b") {
		t.Errorf("stderr is %q", got)
	}
}
