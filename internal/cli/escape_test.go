package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/measure"
	"memorymark/internal/report"
)

// What goes to a file or a pipe has no escape codes, on standard error neither.
func TestNoEscapeCodesOnStderr(t *testing.T) {
	var stderr strings.Builder
	e := &env{stdout: &strings.Builder{}, stderr: &stderr}
	early := &engine.UnfinishedError{
		Probes: []analysis.Probe{{Outcome: measure.Outcome{Batch: 8}, Success: true, Purpose: "confirm"}}, Err: errors.New("out of probes"),
	}
	err := (&analyzeFlags{}).explain(e, early)
	printError(&stderr, err)
	if got := stderr.String(); !strings.Contains(got, "confirm") || strings.Contains(got, "\x1b") {
		t.Errorf("stderr is %q", got)
	}
}

// terminal is one to a program that asks, and keeps what it is sent.
type terminal struct {
	bytes.Buffer
	*os.File
}

func (t *terminal) Read(p []byte) (int, error)  { return t.File.Read(p) }
func (t *terminal) Write(p []byte) (int, error) { return t.Buffer.Write(p) }

// NO_COLOR takes bold type away, too, and any value of it will do.
func TestNoColor(t *testing.T) {
	device, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("NOT TESTED: there is no pseudo-terminal: ", err)
	}
	defer device.Close()
	t.Setenv("TERM", "xterm-256color")
	for value, styled := range map[string]bool{"": true, "1": false, "yes": false} {
		t.Setenv("NO_COLOR", value)
		w := &terminal{File: device}
		err := writeText(w, 80, report.Probes{{Outcome: measure.Outcome{Batch: 8}, Success: true}}.Write)
		if got := w.String(); err != nil || strings.Contains(got, "\x1b") != styled || !strings.Contains(got, "BATCH") {
			t.Errorf("with NO_COLOR=%s it is %q, %v", value, got, err)
		}
	}
}
