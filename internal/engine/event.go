package engine

import (
	"fmt"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/measure"
)

// EventKind is what happened.
type EventKind string

// What happens while an analysis measures, in this order, and messages.
const (
	Ready    EventKind = "ready"  // the prober is
	Trying   EventKind = "trying" // a batch
	StepDone EventKind = "step"   // of the batch
	Tried    EventKind = "tried"  // the batch
	Message  EventKind = "message"
)

// MeasuringEvent is something that happened while an analysis measured.
type MeasuringEvent struct {
	Kind      EventKind         `json:"kind"`
	Purpose   string            `json:"purpose,omitempty"` // of the probe: confirm, guide, current or time
	Batch     int64             `json:"batch_size,omitempty"`
	Step      int               `json:"step,omitempty"` // from 1
	Success   *bool             `json:"success,omitempty"`
	Allocated int64             `json:"memory_bytes,omitempty"` // peak
	Reserved  int64             `json:"reserved_bytes,omitempty"`
	Seconds   float64           `json:"seconds,omitempty"`
	Message   string            `json:"message,omitempty"`
	Device    *measure.Device   `json:"device,omitempty"`
	Versions  *measure.Versions `json:"versions,omitempty"`
}

// String is the event as a line for people.
func (e MeasuringEvent) String() string {
	switch e.Kind {
	case Ready:
		return fmt.Sprintf("%s, PyTorch %s, imported in %.1f s", e.Device.Name, e.Versions.Torch, e.Seconds)
	case Message:
		return e.Message
	case Trying:
		return fmt.Sprintf("batch %d: %s", e.Batch, purposeText[e.Purpose])
	case StepDone:
		return fmt.Sprintf("batch %d: step %d took %.3f s and %v%s", e.Batch, e.Step, e.Seconds, bytesize.Bytes(e.Allocated), reserved(e.Reserved))
	default:
		if e.Success != nil && !*e.Success {
			return fmt.Sprintf("batch %d: %s (%.1f s)", e.Batch, e.Message, e.Seconds)
		}
		return fmt.Sprintf("batch %d: trains, %v%s (%.1f s)", e.Batch, bytesize.Bytes(e.Allocated), reserved(e.Reserved), e.Seconds)
	}
}

var purposeText = map[string]string{
	analysis.Confirming: fmt.Sprintf("%d full steps in a fresh process", confirmSteps),
	analysis.Guiding:    "how memory grows",
	analysis.Looking:    "the present batch",
	analysis.Timing:     "how fast it is",
}

func reserved(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" of %v reserved", bytesize.Bytes(n))
}
