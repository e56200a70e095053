package gpu

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/invalid"
)

const leastCard = `{"memory": "24 GiB", "compute_capability": "8.6", "multiprocessors": 82}`

// Three keys are enough, and the others are those of the nearest card.
func TestReadLeavesOut(t *testing.T) {
	c, err := Read([]byte(leastCard))
	if err != nil {
		t.Fatal(err)
	}
	like, err := Find("rtx-3090")
	if err != nil {
		t.Fatal(err)
	}
	if c.Memory.Bytes != 24*bytesize.GiB || c.SMs != 82 || c.ThreadsPerSM != 1536 || c.Context.Bytes != like.Context.Bytes {
		t.Errorf("read %+v", c)
	}
	if c.L2 != like.L2 || c.ClockMHz != like.ClockMHz || c.MemoryClockMHz != like.MemoryClockMHz || c.BusBits != like.BusBits {
		t.Errorf("read %+v; want the device of an RTX 3090", c)
	}
	if math.Abs(c.BandwidthGBPerS-936) > 1 || c.DenseTFLOPS != like.DenseTFLOPS {
		t.Errorf("read %v GB/s and %+v", c.BandwidthGBPerS, c.DenseTFLOPS)
	}
	if want := []string{"l2_bytes", "clock_mhz", "memory_clock_mhz", "bus_bits", "ecc"}; !slices.Equal(c.Estimated, want) {
		t.Errorf("estimated %v, want %v", c.Estimated, want)
	}
	if !c.Context.Estimated || c.Source == "" || c.DeviceSource == "" || c.Memory.Source == "" {
		t.Errorf("a source is missing: %+v", c)
	}
}

// A card with half the multiprocessors at the same clock has half the rate,
// and its bandwidth is that of its own bus.
func TestReadScales(t *testing.T) {
	c, err := Read([]byte(`{"memory": 8589934592, "compute_capability": "9.0", "multiprocessors": 66, "clock_mhz": 1980, "memory_clock_mhz": 1000, "bus_bits": 256}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.BandwidthGBPerS != 64 {
		t.Errorf("%v GB/s", c.BandwidthGBPerS)
	}
	like := mostSimilar(c)
	want := like.DenseTFLOPS.FP32 * 66 * 1980 / float64(like.SMs*like.ClockMHz)
	if math.Abs(c.DenseTFLOPS.FP32-want) > 1e-9 {
		t.Errorf("%v TFLOPS like an %s, want %v", c.DenseTFLOPS.FP32, like.ID, want)
	}
}

// A row of the catalog reads back as it is, alone or as gpus --json prints it.
func TestReadRowsOfTheCatalog(t *testing.T) {
	for _, c := range All() {
		row, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range []string{string(row), `{"gpus": [` + string(row) + `]}`} {
			got, err := Read([]byte(data))
			if err != nil {
				t.Errorf("%s: %v", c.ID, err)
				continue
			}
			if again, _ := json.Marshal(got); string(again) != string(row) {
				t.Errorf("%s reads as\n%s, want\n%s", c.ID, again, row)
			}
		}
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	with := func(key, value string) string {
		var o map[string]json.RawMessage
		if err := json.Unmarshal([]byte(leastCard), &o); err != nil {
			t.Fatal(err)
		}
		o[key] = json.RawMessage(value)
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, c := range []struct{ name, data, want string }{
		{"not JSON", `{"memory": `, "not JSON, at byte"},
		{"a list", `[1]`, "[1] is not a JSON object"},
		{"two cards", `{"gpus": [{}, {}]}`, "a list of one card"},
		{"nothing", `{}`, `memory is missing; it must be a size as "23.6 GiB"`},
		{"null", `null`, "multiprocessors is missing; it must be a whole number"},
		{"unknown key", with("l2", "1"), `"l2" is not a key of a card; did you mean l2_bytes`},
		{"a key like none", with("colour", `"green"`), `"colour" is not a key of a card; the keys are aliases, as_of, bandwidth_gb_per_s`},
		{"another case", with("Memory", "1"), `"Memory" is not a key of a card`},
		{"kind", with("multiprocessors", "1.5"), "multiprocessors is 1.5; it must be a whole number"},
		{"range", with("multiprocessors", "0"), "multiprocessors is 0; it must be 1 to 1024"},
		{"capability", with("compute_capability", `"8.5"`), `compute_capability is "8.5"; it must be one of "7.0", "7.5", "8.0"`},
		{"capability with more", with("compute_capability", `"8.6a"`), `compute_capability is "8.6a"; it must be one of`},
		{"capability as a number", with("compute_capability", "8.6"), "compute_capability is 8.6; it must be one of"},
		{"memory", with("memory", `"24 apples"`), `memory is "24 apples"; it must be a size`},
		{"memory in GB", with("memory", "24"), "memory is 24; it must be 1 GiB to 16 TiB"},
		{"key of memory", with("memory", `{"byte": 1}`), `memory is {"byte":1}; it must be a size`},
		{"no memory left", with("context", `"24 GiB"`), "memory is 24.00 GiB; it must be more than the context, 24.00 GiB"},
		{"threads", with("threads_per_multiprocessor", "2048"), "threads_per_multiprocessor is 2048; compute capability 8.6 has 1536"},
		{"cache", with("l2_bytes", "-1"), "l2_bytes is -1; it must be 1 to 4294967296"},
		{"clock in kHz", with("clock_mhz", "1695000"), "clock_mhz is 1695000; it must be 1 to 10000"},
		{"rates", with("dense_tflops", `{"bf16": 71}`), `dense_tflops is {"bf16":71}; fp32 must be more than 0`},
		{"negative rate", with("dense_tflops", `{"fp32": 35, "fp16": -1}`), "no rate less"},
		{"price", with("price", `{"usd_per_hour": 0}`), "usd_per_hour must be more than 0"},
		{"ecc", with("ecc", `"on"`), `ecc is "on"; it must be true or false`},
	} {
		_, err := Read([]byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Read(%s): %v; want %q in it", c.name, c.data, err, c.want)
		}
	}
}

// Data sheets give the data rate, CUDA half of it.
func TestReadComparesTheBus(t *testing.T) {
	data := strings.Replace(leastCard, "{", `{"bandwidth_gb_per_s": 936, "memory_clock_mhz": 19500, "bus_bits": 384, `, 1)
	if _, err := Read([]byte(data)); err == nil || !strings.Contains(err.Error(), "the clock is half of the data rate") {
		t.Errorf("Read(%s): %v", data, err)
	}
}

// Every problem is named at once.
func TestReadNamesAll(t *testing.T) {
	_, err := Read([]byte(`{"memory": "x", "multiprocessors": -1, "colour": "green"}`))
	var wrong *invalid.Error
	if !errors.As(err, &wrong) || len(wrong.Problems) != 4 {
		t.Errorf("%v; want four problems", err)
	}
}

// A card that can be read can be used everywhere.
func FuzzRead(f *testing.F) {
	f.Add([]byte(leastCard))
	f.Add([]byte(`{"gpus": [` + leastCard + `]}`))
	f.Add([]byte(`{"memory": {"bytes": 1e10}, "compute_capability": "12.0", "multiprocessors": 1, "price": {"usd_per_hour": 1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read(data)
		if err != nil {
			return
		}
		if c.Usable() <= 0 || c.SMs < 1 || c.ThreadsPerSM < 1 || c.L2 < 1 || c.ClockMHz < 1 || c.MemoryClockMHz < 1 || c.BusBits < 1 {
			t.Errorf("%s: a figure is missing: %+v", data, c)
		}
		if c.Limits() == (SMLimits{}) || c.BandwidthGBPerS <= 0 || c.DenseTFLOPS.FP32 <= 0 {
			t.Errorf("%s: limits or rates are missing: %+v", data, c)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	})
}
