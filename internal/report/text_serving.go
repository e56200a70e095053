package report

import (
	"fmt"
	"strings"

	"memorymark/internal/emulate"
	"memorymark/internal/figure"
)

// writeServing says whether an inference server starts, and for how much its KV
// cache has space.
func writeServing(b *strings.Builder, s *emulate.Serving) {
	each := ""
	if s.GPUs > 1 {
		each = fmt.Sprintf(" on %d GPUs; memory is that of each", s.GPUs)
	}
	if s.Starts {
		fmt.Fprintf(b, "  %s %s starts with %s%s\n", s.Engine, s.Version, s.Model, each)
	} else {
		fmt.Fprintf(b, "  %s %s does not start with %s: %s\n", s.Engine, s.Version, s.Model, s.Error)
	}
	if s.Weights == 0 {
		return
	}
	weights := ""
	if s.Dummy {
		weights = "dummies of the right size"
	}
	rows := [][]string{
		{"weights", s.Weights.String(), weights},
		{"activations and CUDA graphs", s.Activations.String(), ""},
		{"KV cache", s.KVCache.String(), cacheText(s)},
		{"longest --max-model-len", "", longestText(s)},
	}
	for _, r := range rows {
		if r[1] != "" || r[2] != "" {
			b.WriteString(strings.TrimRight(fmt.Sprintf("    %-27s  %10s  %s", r[0], r[1], r[2]), " ") + "\n")
		}
	}
}

func cacheText(s *emulate.Serving) string {
	if s.Tokens == 0 {
		return ""
	}
	return fmt.Sprintf("%s tokens, %.1f requests of %s at once", figure.Count(int(s.Tokens)), s.Concurrency, figure.Count(int(s.MaxModelLen)))
}

func longestText(s *emulate.Serving) string {
	switch {
	case s.LargestMaxModelLen == 0:
		return ""
	case s.LargestMaxModelLen >= s.ModelLimit:
		return figure.Count(int(s.LargestMaxModelLen)) + ", all that the model is made for"
	default:
		return fmt.Sprintf("%s of the model's %s", figure.Count(int(s.LargestMaxModelLen)), figure.Count(int(s.ModelLimit)))
	}
}
