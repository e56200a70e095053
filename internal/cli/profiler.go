package cli

import (
	"github.com/spf13/cobra"

	"memorymark/internal/study"
)

// engineFlag says whether to measure or to predict.
type engineFlag struct{ engine string }

func addEngineFlag(c *cobra.Command) *engineFlag {
	f := &engineFlag{}
	c.Flags().StringVar(&f.engine, "engine", "auto", "`how`: measured, predicted, or auto, which measures where it can")
	return f
}

// profiler returns who profiles the cells of a study.
func (f *engineFlag) profiler() (study.Profiler, error) {
	switch f.engine {
	case "auto", study.Predicted:
		return study.Predictor{}, nil
	case study.Measured:
		return nil, badUsage("use --engine predicted", "--engine measured: this version measures no studies yet")
	default:
		return nil, badUsage("", "--engine is %q; it must be auto, predicted or measured", f.engine)
	}
}
