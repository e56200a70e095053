package gpu

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
)

// Every row is whole: a figure without a source is a rumour.
func TestCatalogIsWhole(t *testing.T) {
	seen := make(map[string]string)
	for _, c := range All() {
		for _, name := range append([]string{c.ID, strings.ToLower(c.Name)}, c.Aliases...) {
			if name != strings.ToLower(name) {
				t.Errorf("%s: %q is not in lower case", c.ID, name)
			}
			if other, ok := seen[name]; ok && other != c.ID {
				t.Errorf("%q is both %s and %s", name, other, c.ID)
			}
			seen[name] = c.ID
		}
		if c.Source == "" || c.AsOf == "" || c.Memory.Source == "" || c.Context.Source == "" {
			t.Errorf("%s: a source or a date is missing", c.ID)
		}
		if c.Price != nil && (c.Price.USDPerHour <= 0 || c.Price.Provider == "" || c.Price.Source == "" || c.Price.AsOf == "") {
			t.Errorf("%s: the price is not whole: %+v", c.ID, *c.Price)
		}
		if c.SMs <= 0 || c.BandwidthGBPerS <= 0 || c.DenseTFLOPS.FP32 <= 0 || c.Usable() <= 6*bytesize.GiB {
			t.Errorf("%s: figures are missing: %+v", c.ID, *c)
		}
		if c.L2 <= 0 || c.DeviceSource == "" {
			t.Errorf("%s: figures of the device are missing: %+v", c.ID, *c)
		}
		if want := c.Limits().Threads; c.ThreadsPerSM != want {
			t.Errorf("%s: %d threads a multiprocessor, capability %v has %d", c.ID, c.ThreadsPerSM, c.ComputeCapability, want)
		}
		if hasBF16 := c.DenseTFLOPS.BF16 > 0; hasBF16 != (c.ComputeCapability.Major >= 8) {
			t.Errorf("%s: bf16 %v of capability %v", c.ID, hasBF16, c.ComputeCapability)
		}
	}
}

// Data sheets and what CUDA reports come from different places, and agree: the
// memory moves data twice a clock on each line of its bus, and a core adds and
// multiplies once a clock.
func TestClocksAgreeWithDataSheets(t *testing.T) {
	for _, c := range All() {
		bandwidth := 2 * float64(c.MemoryClockMHz) * float64(c.BusBits) / 8 / 1e3
		if off := bandwidth/c.BandwidthGBPerS - 1; math.Abs(off) > 0.05 {
			t.Errorf("%s: %d MHz on %d bits are %.0f GB/s, the data sheet says %.0f", c.ID, c.MemoryClockMHz, c.BusBits, bandwidth, c.BandwidthGBPerS)
		}
		cores := float64(c.SMs * coresPerSM(c.ComputeCapability))
		rate := 2 * cores * float64(c.ClockMHz) / 1e6
		// The widest is an A10G, whose data sheet counts at another clock.
		if off := rate/c.DenseTFLOPS.FP32 - 1; math.Abs(off) > 0.12 {
			t.Errorf("%s: %.0f cores at %d MHz are %.1f TFLOPS, the data sheet says %.1f", c.ID, cores, c.ClockMHz, rate, c.DenseTFLOPS.FP32)
		}
	}
}

// coresPerSM is _ConvertSMVer2Cores of NVIDIA's cuda-samples.
func coresPerSM(c Capability) int {
	if c.Major == 7 || c == (Capability{8, 0}) {
		return 64
	}
	return 128
}

// An estimate that names a key that does not exist would hide another.
func TestEstimatedAreKeys(t *testing.T) {
	keys := []string{"l2_bytes", "clock_mhz", "memory_clock_mhz", "bus_bits", "ecc"}
	for _, c := range All() {
		for _, key := range c.Estimated {
			if !slices.Contains(keys, key) {
				t.Errorf("%s: %q is estimated, but not a key of the device", c.ID, key)
			}
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct{ name, id string }{
		{"a10", "a10"},
		{"A10", "a10"},
		{"NVIDIA A10G", "a10g"},
		{" h200 ", "h200"},
		{"a100", "a100-80gb"},
		{"NVIDIA H100 80GB HBM3", "h100"},
		{"RTX4090", "rtx-4090"},
		{"RTX 4090", "rtx-4090"},
		{"A100 80GB", "a100-80gb"},
		{"NVIDIA GeForce RTX 3060 12 GB", "rtx-3060"},
	} {
		got, err := Find(c.name)
		if err != nil || got.ID != c.id {
			t.Errorf("Find(%q) = %v, %v; want %s", c.name, got, err, c.id)
		}
	}
}

func TestUnknownNamesWhatIsNear(t *testing.T) {
	for _, c := range []struct{ name, near string }{
		{"rtx-4009", "rtx-4090"}, {"h10", "h100"}, {"a100-sxm", "a100-80gb"}, {"v100-64gb", "v100-32gb"},
	} {
		_, err := Find(c.name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !slices.Contains(unknown.Near, c.near) {
			t.Errorf("Find(%q): %v; want %s among those near", c.name, err, c.near)
		}
	}
	var unknown *UnknownError
	if _, err := Find("abacus"); !errors.As(err, &unknown) || len(unknown.Near) > 0 {
		t.Errorf("nothing is like an abacus: %v", err)
	}
}

// The A10 of published results has 22.1 GiB.
func TestA10(t *testing.T) {
	c, err := Find("a10")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Memory.Bytes.GiB(); got != 22.07 {
		t.Errorf("an A10 has %v GiB", got)
	}
}

// TestUnnamed: a question that names no card is about this machine's, else a default.
func TestUnnamed(t *testing.T) {
	here, err := Find("t4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		here *Card
		want string
	}{{here, "t4"}, {nil, Default}} {
		if card, err := Unnamed(c.here, Default); err != nil || card.ID != c.want {
			t.Errorf("%v, %v; want %s", card, err, c.want)
		}
	}
}
