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

// UnmarshalJSON reads versions, and names an unknown key. An absent version is
// the default one.
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

// Libraries returns the versions that the workload runs with.
func (w *Workload) Libraries() models.Versions {
	if w.Versions == nil {
		return models.Reference
	}
	return models.Versions(*w.Versions)
}

// settleVersions checks whether the model is modelled in its versions.
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

// beyondPlain names the features that a workload has beyond steps in a plain loop
// on one GPU.
func (w *Workload) beyondPlain() (more []string) {
	add := func(has bool, what string) {
		if has {
			more = append(more, what)
		}
	}
	add(w.Adapter != nil, models.Adapters)
	add(w.Adapter != nil && w.Adapter.DoRA, models.DoRA)
	add(w.Adapter != nil && len(w.Adapter.ModulesToSave) > 0, models.SavedModules)
	add(w.Quantize != NotQuantized, fmt.Sprintf("quantize %q", w.Quantize))
	add(w.Parallel != nil, "training on several GPUs")
	add(w.Loop.IsLibrarys(), fmt.Sprintf("loop %q", w.Loop.Name))
	add(!slices.Contains(w.heldOptimizers(), w.Optimizer), fmt.Sprintf("optimizer %q", w.Optimizer))
	add(w.Mode == Evaluation, models.Evaluation)
	return more
}
