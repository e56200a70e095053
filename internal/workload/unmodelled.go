package workload

import (
	"errors"

	"memorymark/internal/invalid"
	"memorymark/internal/models"
)

// Runnable is like Workload, but takes a config.json that is not modelled, too:
// PyTorch may know how to run it. Unmodelled then says why it cannot be predicted.
func (d Draft) Runnable() (*Workload, error) { return d.workload(true) }

// ParseRunnable is like Parse, for a workload that will be run.
func ParseRunnable(data []byte) (*Workload, error) {
	d, err := ParseDraft(data)
	if err != nil {
		return nil, err
	}
	return d.Runnable()
}

// Unmodelled reports whether an error says that a family or an architecture is
// not modelled, where Runnable may help.
func Unmodelled(err error) bool {
	var unmodelled *models.UnmodelledError
	return errors.As(err, &unmodelled)
}

// settleUnmodelled decides whether the configuration is modelled, given its
// errors so far. If it is not, only what PyTorch could not run is an error.
func (w *Workload) settleUnmodelled(err error) error {
	if w.Config.ModelType == "" {
		return err
	}
	var unmodelled *models.UnmodelledError
	switch {
	case errors.As(err, &unmodelled):
		w.Unmodelled = unmodelled.Reason()
	case err != nil:
		return err
	default:
		var p *invalid.Problem
		if err := models.Check(w.Config, 1); !errors.As(err, &p) || p.Key != "config" {
			return nil
		}
		w.Unmodelled = p.Error()
	}
	return invalid.At("config", w.Config.CheckRunnable())
}
