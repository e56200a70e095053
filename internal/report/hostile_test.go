package report

import (
	"testing"
	"time"

	"memorymark/internal/trace/tracetest"
)

// TestHostileAnswers asks everything of long hostile recordings.
func TestHostileAnswers(t *testing.T) {
	for _, shape := range tracetest.Hostile {
		t.Run(shape.Name, func(t *testing.T) {
			tr := shape.Make(20_000)
			start := time.Now()
			askAll(t, tr)
			t.Log(time.Since(start))
		})
	}
}
