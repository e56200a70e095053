package cli

import (
	"context"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/study"
)

// profiler returns who profiles the cells of a study: this machine's GPU, or a
// prediction. The first cell says what to import.
func (f *engineFlags) profiler(ctx context.Context, e *env, first study.Cell) (study.Profiler, error) {
	if f.device = first.Device; f.device == "" || f.device == "cuda" {
		f.device = analysis.AutoDevice // the usual one, wherever it is found
	}
	if f.engine == evidence.Predicted && (f.device == "cpu" || f.device == "mps") {
		return nil, badUsage("leave --device out", "--device %s: predictions are for the CUDA allocator", f.device)
	}
	if err := f.start(ctx, e); err != nil {
		return nil, err
	}
	p, err := f.runner.Profiler(ctx, f.engine, first)
	return p, explainUnable(err, nil)
}
