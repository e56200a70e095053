package trace

import (
	"fmt"
	"slices"
	"strings"
)

// String writes the settings as PYTORCH_CUDA_ALLOC_CONF would; "defaults" if
// there is nothing to set.
func (s *Settings) String() string {
	var parts []string
	if s.ExpandableSegments {
		parts = append(parts, "expandable_segments:True")
	}
	if s.MaxSplitSize > 0 {
		parts = append(parts, fmt.Sprintf("max_split_size_mb:%d", s.MaxSplitSize>>20))
	}
	if s.GCThreshold > 0 {
		parts = append(parts, fmt.Sprintf("garbage_collection_threshold:%g", s.GCThreshold))
	}
	if d := s.RoundupDivisions; d != [16]int64{} {
		parts = append(parts, "roundup_power2_divisions:"+divisions(d[:]))
	}
	if len(parts) == 0 {
		return "defaults"
	}
	return strings.Join(parts, ",")
}

// divisions writes one number if all sizes share it, else a list by size in MiB.
func divisions(d []int64) string {
	if slices.Min(d) == slices.Max(d) {
		return fmt.Sprint(d[0])
	}
	parts := make([]string, len(d))
	for i, n := range d {
		parts[i] = fmt.Sprintf("%d:%d", 1<<i, n)
	}
	return "[" + strings.Join(parts, ",") + "]"
}
