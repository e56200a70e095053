package recording

import (
	"errors"
	"math"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// What PyTorch accepts, and what it does not.
func TestWhatIf(t *testing.T) {
	limit := pointer(8 * bytesize.GiB)
	for _, c := range []struct {
		whatIf WhatIf
		wrong  string // setting
	}{
		{WhatIf{}, ""},
		{WhatIf{Limit: limit, ExpandableSegments: pointer(false), MaxSplitSize: pointer(20 * bytesize.MiB), GCThreshold: pointer(0.99), Roundup: pointer[int64](2)}, ""},
		{WhatIf{Limit: pointer[bytesize.Bytes](0)}, LimitSetting},
		{WhatIf{Limit: pointer[bytesize.Bytes](24)}, LimitSetting}, // GiB were meant
		{WhatIf{MaxSplitSize: pointer(19 * bytesize.MiB)}, MaxSplitSizeSetting},
		{WhatIf{Limit: limit, GCThreshold: pointer(0.0)}, GCThresholdSetting},
		{WhatIf{Limit: limit, GCThreshold: pointer(1.0)}, GCThresholdSetting},
		{WhatIf{Limit: limit, GCThreshold: pointer(math.NaN())}, GCThresholdSetting},
		{WhatIf{GCThreshold: pointer(0.8)}, GCThresholdSetting},
		{WhatIf{Roundup: pointer[int64](0)}, RoundupSetting},
		{WhatIf{Roundup: pointer[int64](1)}, RoundupSetting},
		{WhatIf{Roundup: pointer[int64](6)}, RoundupSetting},
		{WhatIf{GraphPool: pointer[bytesize.Bytes](0)}, GraphPoolSetting},
	} {
		change, err := c.whatIf.change(trace.Settings{ExpandableSegments: true})
		var wrong *WhatIfError
		switch {
		case c.wrong == "" && err != nil, c.wrong != "" && (!errors.As(err, &wrong) || wrong.Setting != c.wrong):
			t.Errorf("%+v: %v, want %q", c.whatIf, err, c.wrong)
		case c.whatIf.Roundup != nil && err == nil:
			s := change.Settings
			if change.Limit != int64(*limit) || s.ExpandableSegments || s.MaxSplitSize != 20<<20 || s.GCThreshold != 0.99 || s.RoundupDivisions[3] != 2 {
				t.Errorf("%+v became %+v", c.whatIf, change)
			}
		case c.whatIf == WhatIf{} && change != nil:
			t.Errorf("nothing became %+v", change)
		}
	}
}

func pointer[T any](v T) *T { return &v }
