package engine

import (
	"context"
	"fmt"
	"strings"

	"memorymark/internal/analysis"
	"memorymark/internal/change"
	"memorymark/internal/emulate"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
)

// FitProbe returns what runs the steps of a search for changes on an emulated card.
// It calls tell before each trial.
func (r *Runner) FitProbe(ctx context.Context, card *gpu.Card, tell func(change.Trial)) change.Prober {
	return func(t change.Trial) (*change.Steps, error) {
		tell(t)
		p, err := r.Emulate(ctx, analysis.Request{Workload: t.Workload, Card: card}, nil, "")
		if err != nil {
			return nil, err
		}
		out := &change.Steps{
			Verdict:     predict.VerdictOf(p.Fits, p.PeakReserved(), p.Limit, t.Margin),
			StepSeconds: p.StepSeconds, StepRange: p.StepRange, Reason: reasonOf(p), Notes: notesOf(p),
		}
		if p.Fits { // else the peak of the steps before the one that failed says little
			out.Peak = predict.PeakOf(p.Steps)
		}
		return out, nil
	}
}

// reasonOf is why the steps do not fit.
func reasonOf(p *analysis.Prediction) string {
	switch {
	case p.Fits:
		return ""
	case p.OutOfMemory != nil:
		return p.OutOfMemory.Reason()
	default:
		return strings.TrimSuffix(p.Failure.Summary()+": "+p.Failure.Message, ": ")
	}
}

// notesOf say what ran the steps, and where they are not those of a real card.
func notesOf(p *analysis.Prediction) []string {
	notes := []string{fmt.Sprintf("%s, so that PyTorch %s ran it on an emulated %s", p.Because, p.Versions.Torch, p.GPUName)}
	return append(append(append(notes, assumedNotes(p.Assumed)...), p.Notes...), p.AccuracyNotes...)
}

// assumedNotes say which values were made up.
func assumedNotes(assumed []emulate.Assumption) (notes []string) {
	for _, a := range assumed {
		notes = append(notes, fmt.Sprintf("%s was made up for %s at %s", a.Assumed, a.Function, a.Where))
	}
	return notes
}
