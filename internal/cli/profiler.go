package cli

import (
	"context"

	"memorymark/internal/analysis"
	"memorymark/internal/study"
)

// profiler returns who profiles the cells of a study: this machine's GPU, or a
// prediction. The first cell says what to import.
func (f *engineFlags) profiler(ctx context.Context, e *env, first study.Cell) (study.Profiler, error) {
	if f.device = first.Device; f.device == "" || f.device == "cuda" {
		f.device = autoDevice // the usual one, wherever it is found
	}
	wanted, err := f.wanted(ctx, e, first.Workload, nil)
	if err != nil {
		return nil, err
	}
	if wanted {
		session, err := f.session(ctx, e, first.Workload, nil, 0)
		if err != nil {
			return nil, err
		}
		if session != nil {
			return &analysis.Profiler{Session: session}, nil
		}
	}
	if f.device == "cpu" || f.device == "mps" {
		return nil, badUsage("leave --device out", "--device %s: predictions are of CUDA's allocator", f.device)
	}
	return study.Predictor{}, nil
}
