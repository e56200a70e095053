package workload

import (
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/models"
)

// WithProgram returns a copy that trains what a user's own function makes. The error says
// which setting is not predicted then.
func (w *Workload) WithProgram(p models.Program) (*Workload, error) {
	for _, setting := range []struct {
		name  string
		given bool
	}{
		{"parallel", w.Parallel != nil},
		{"adapter", w.Adapter != nil},
		{"quantize", w.Quantize != NotQuantized},
		{"lengths", w.Lengths != nil},
		{"channels_last", w.ChannelsLast},
		{"checkpointing", w.Checkpointing},
		{"attention", w.Attention == Eager},
		{"loop", w.Loop.Name != "" && w.Loop.Name != PlainLoop},
	} {
		if setting.given {
			return nil, fmt.Errorf("%s of your own model is not predicted; leave it out, or have %s do it", setting.name, w.Model)
		}
	}
	own := *w
	own.Program, own.Config = p, &hfconfig.Config{Architecture: w.Model}
	return &own, nil
}
