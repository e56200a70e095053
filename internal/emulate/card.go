package emulate

import (
	"fmt"
	"strings"

	"memorymark/internal/gpu"
)

// driverVersion is the CUDA version that the emulated driver speaks: as new as
// any PyTorch asks for, so that none turns it down.
const driverVersion = 13000

// describe writes a card as the library reads it (card.c).
func describe(c *gpu.Card) string {
	l := c.Limits()
	var b strings.Builder
	for _, f := range []struct {
		key   string
		value any
	}{
		{"name", strings.NewReplacer(";", ",", `"`, "'", `\`, "/").Replace(c.Name)},
		{"memory", int64(c.Memory.Bytes)},
		{"context", int64(c.Context.Bytes)},
		{"capability", c.ComputeCapability},
		{"multiprocessors", c.SMs},
		{"threads_per_multiprocessor", c.ThreadsPerSM},
		{"blocks_per_multiprocessor", l.Blocks},
		{"shared_per_multiprocessor", int64(l.Shared)},
		{"shared_optin", int64(l.SharedPerBlockMax)},
		{"l2", int64(c.L2)},
		{"clock_khz", c.ClockMHz * 1000},
		{"memory_clock_khz", c.MemoryClockMHz * 1000},
		{"bus_bits", c.BusBits},
		{"driver", driverVersion},
	} {
		fmt.Fprintf(&b, "%s=%v;", f.key, f.value)
	}
	return b.String()
}
