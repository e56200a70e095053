package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"memorymark/internal/invalid"
	"memorymark/internal/models"
)

// Versions are the libraries that a step runs with.
type Versions models.Versions

// UnmarshalJSON reads versions, and names a key that there is not. One that is
// absent is the one that is predicted anyway.
func (v *Versions) UnmarshalJSON(data []byte) error {
	read := models.Reference
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return err
	}
	*v = Versions(read)
	return nil
}

// Libraries are the versions that the workload runs with.
func (w *Workload) Libraries() models.Versions {
	if w.Versions == nil {
		return models.Reference
	}
	return models.Versions(*w.Versions)
}

// settleVersions finds out whether the model is modelled in its versions.
func (w *Workload) settleVersions(wrong *invalid.Error, mayBeUnmodelled bool) {
	if w.Config == nil || w.Unmodelled != "" {
		return
	}
	err := models.CheckVersions(w.Config, w.Libraries(), w.beyondPlain())
	var unmodelled *models.UnmodelledError
	if mayBeUnmodelled && errors.As(err, &unmodelled) {
		w.Unmodelled = unmodelled.Reason()
		return
	}
	wrong.Add(invalid.At("versions", err))
}

// beyondPlain names what a workload has beyond steps in a loop written by hand on
// one GPU, "" for nothing.
func (w *Workload) beyondPlain() string {
	switch {
	case w.Adapter != nil:
		return "an adapter"
	case w.Quantize != NotQuantized:
		return fmt.Sprintf("quantize %q", w.Quantize)
	case w.Parallel != nil:
		return "training on several GPUs"
	case w.Loop.IsLibrarys():
		return fmt.Sprintf("loop %q", w.Loop.Name)
	case !slices.Contains(w.heldOptimizers(), w.Optimizer):
		return fmt.Sprintf("optimizer %q", w.Optimizer)
	case w.Attention == Eager && models.Excepts(w.Config, w.Libraries(), models.EagerAttention):
		return models.EagerAttention
	default:
		return ""
	}
}
