package analysis

import (
	"memorymark/internal/emulate"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/steptime"
)

// Prediction is what the steps of one batch take on a card, whoever says so.
type Prediction struct {
	predict.Prediction
	*Emulation // nil if nothing ran
}

// WithID is the answer for an equal workload that has an id.
func (p *Prediction) WithID(id string) *Prediction {
	return &Prediction{*p.Prediction.WithID(id), p.Emulation}
}

// Emulation is what a prediction has in addition if PyTorch ran the steps on an
// emulated card.
type Emulation struct {
	ModelName string            `json:"model_name,omitempty"`
	GPUName   string            `json:"gpu_name,omitempty"`
	Because   string            `json:"because,omitempty" doc:"why it was not predicted"`
	Failure   *measure.Failure  `json:"failure,omitempty" doc:"PyTorch's own error where the steps do not fit"`
	Versions  *measure.Versions `json:"versions,omitempty"`
	Notes     []string          `json:"notes,omitempty" doc:"what was made of a configuration that is not modelled"`
	// Assumed are the places where a value that a kernel would have computed was made up.
	Assumed       []emulate.Assumption `json:"assumed,omitempty" doc:"where a value was made up that a kernel would have computed"`
	AccuracyNotes []string             `json:"accuracy_notes,omitempty" doc:"how far off emulated steps were"`
	TimeAccuracy  *steptime.Accuracy   `json:"step_seconds_accuracy,omitempty"`
}
