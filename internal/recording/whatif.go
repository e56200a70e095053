package recording

import (
	"fmt"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// WhatIf is what a replay changes about the recorded run. Nil keeps what was
// recorded.
type WhatIf struct {
	Limit              *bytesize.Bytes // maximum that the allocator may reserve
	ExpandableSegments *bool
	MaxSplitSize       *bytesize.Bytes
	GCThreshold        *float64        // a share of Limit
	Roundup            *int64          // divisions between powers of two
	GraphPool          *bytesize.Bytes // what the pool of CUDA graphs has from the start
}

// The parts of a WhatIf that can be invalid.
const (
	LimitSetting        = "limit"
	MaxSplitSizeSetting = "max_split_size"
	GCThresholdSetting  = "gc_threshold"
	RoundupSetting      = "roundup"
	GraphPoolSetting    = "graph_pool"
)

// WhatIfError says which part of a WhatIf is invalid.
type WhatIfError struct {
	Setting string
	Why     string // begins with the value
}

func (e *WhatIfError) Error() string { return e.Setting + " is " + e.Why }

// Minimums: PyTorch refuses a split size below a large segment
// (AllocatorConfig, max_split_size_mb); a limit below the smallest segment is
// probably a number without its unit.
const (
	leastLimit = 2 * bytesize.MiB
	leastSplit = 20 * bytesize.MiB
)

// Check applies PyTorch's rules (c10/core/AllocatorConfig.cpp) and ours. Its error is
// a *WhatIfError.
func (w *WhatIf) Check() error {
	wrong := func(setting, format string, args ...any) error {
		return &WhatIfError{setting, fmt.Sprintf(format, args...)}
	}
	switch {
	case w.Limit != nil && *w.Limit < leastLimit:
		return wrong(LimitSetting, "%v; it must be at least %v", *w.Limit, leastLimit)
	case w.MaxSplitSize != nil && *w.MaxSplitSize < leastSplit:
		return wrong(MaxSplitSizeSetting, "%v; PyTorch takes no less than %v", *w.MaxSplitSize, leastSplit)
	case w.GCThreshold != nil && !(*w.GCThreshold > 0 && *w.GCThreshold < 1):
		return wrong(GCThresholdSetting, "%g; it must be between 0 and 1, both excluded", *w.GCThreshold)
	case w.GCThreshold != nil && w.Limit == nil:
		return wrong(GCThresholdSetting, "%g, a share of the limit, and no limit is given", *w.GCThreshold)
	case w.Roundup != nil && (*w.Roundup < 2 || *w.Roundup&(*w.Roundup-1) != 0):
		return wrong(RoundupSetting, "%d; it must be a power of two, 2 or more", *w.Roundup)
	case w.GraphPool != nil && *w.GraphPool <= 0:
		return wrong(GraphPoolSetting, "%v; it must be more than nothing", *w.GraphPool)
	}
	return nil
}

// change converts a WhatIf for the allocator, nil if it changes nothing.
func (w *WhatIf) change(settings trace.Settings) (*allocator.WhatIf, error) {
	if err := w.Check(); err != nil || *w == (WhatIf{}) {
		return nil, err
	}
	change := &allocator.WhatIf{Settings: &settings}
	if w.Limit != nil {
		change.Limit = int64(*w.Limit)
	}
	if w.GraphPool != nil {
		change.GraphPool = int64(*w.GraphPool)
	}
	if w.ExpandableSegments != nil {
		settings.ExpandableSegments = *w.ExpandableSegments
	}
	if w.MaxSplitSize != nil {
		settings.MaxSplitSize = int64(*w.MaxSplitSize)
	}
	if w.GCThreshold != nil {
		settings.GCThreshold = *w.GCThreshold
	}
	if w.Roundup != nil {
		for i := range settings.RoundupDivisions {
			settings.RoundupDivisions[i] = *w.Roundup
		}
	}
	return change, nil
}
