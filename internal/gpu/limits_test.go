package gpu

import (
	"testing"

	"memorymark/internal/bytesize"
)

// What deviceQuery and cudaGetDeviceProperties show of cards, the H200 of
// testdata/truth among them.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		id              string
		threads, blocks int
		shared, block   bytesize.Bytes
	}{
		{"v100-32gb", 2048, 32, 98304, 98304},
		{"t4", 1024, 16, 65536, 65536},
		{"a100-80gb", 2048, 32, 167936, 166912},
		{"rtx-3060", 1536, 16, 102400, 101376},
		{"rtx-4090", 1536, 24, 102400, 101376},
		{"h200", 2048, 32, 233472, 232448},
		{"b200", 2048, 32, 233472, 232448},
		{"rtx-5090", 1536, 24, 102400, 101376},
	} {
		card, err := Find(c.id)
		if err != nil {
			t.Fatal(err)
		}
		got := card.Limits()
		if got.Threads != c.threads || got.Blocks != c.blocks || got.Shared != c.shared || got.SharedPerBlockMax != c.block {
			t.Errorf("%s: %+v; want %d threads, %d blocks, %d bytes, %d a block", c.id, got, c.threads, c.blocks, c.shared, c.block)
		}
	}
}

// Before Ampere nothing is reserved, and every block has 48 KiB by default.
func TestLimitsOfABlock(t *testing.T) {
	for capability, l := range limits {
		if l.SharedPerBlock != 48*bytesize.KiB || l.SharedPerBlockMax > l.Shared-l.ReservedPerBlock || l.Threads%l.Blocks != 0 {
			t.Errorf("%v: %+v", capability, l)
		}
		if ampere := capability.Major >= 8; ampere != (l.ReservedPerBlock == bytesize.KiB) {
			t.Errorf("%v reserves %d bytes", capability, l.ReservedPerBlock)
		}
	}
	if got := (&Card{}).Limits(); got != (SMLimits{}) {
		t.Errorf("a card of no capability has limits: %+v", got)
	}
}
