// Package gpu is the catalog of graphics cards: what PyTorch sees of each, how
// fast it is on paper, and what it costs. It is data (catalog.json), and every
// row says where its figures come from and when.
package gpu

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"memorymark/internal/bytesize"
	"memorymark/internal/nearest"
)

// Card is a kind of graphics card.
type Card struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Aliases []string `json:"aliases"` // other ids, and the name that the driver reports

	Memory  Amount `json:"memory"`  // total_memory, as PyTorch reports it
	Context Amount `json:"context"` // the part that CUDA and its libraries use outside the allocator

	// The device properties by which CUB and cuDNN choose kernels.
	ComputeCapability Capability     `json:"compute_capability"`
	SMs               int            `json:"multiprocessors"`
	ThreadsPerSM      int            `json:"threads_per_multiprocessor"`
	L2                bytesize.Bytes `json:"l2_bytes"`            // of the second-level cache
	ClockMHz          int            `json:"clock_mhz"`           // of the multiprocessors, at most
	MemoryClockMHz    int            `json:"memory_clock_mhz"`    // half of what a data sheet calls its data rate
	BusBits           int            `json:"bus_bits"`            // width of the path to the memory
	ECC               bool           `json:"ecc"`                 // whether the memory corrects errors by default
	DeviceSource      string         `json:"device_source"`       // of the five above
	Estimated         []string       `json:"estimated,omitempty"` // those of them that were not read from such a card

	BoardWatts      float64 `json:"board_watts,omitempty"` // that the board may take, by its data sheet
	BandwidthGBPerS float64 `json:"bandwidth_gb_per_s"`    // of the memory, in 10⁹ bytes
	DenseTFLOPS     Rates   `json:"dense_tflops"`

	Price  *Price `json:"price,omitempty"` // nil if none was found
	Source string `json:"source"`          // of bandwidth and rates
	AsOf   string `json:"as_of"`
}

// Amount is an amount of memory and where the figure comes from.
type Amount struct {
	Bytes     bytesize.Bytes `json:"bytes"`
	Estimated bool           `json:"estimated,omitempty"` // not read from such a card
	Source    string         `json:"source"`
	AsOf      string         `json:"as_of,omitempty"`
}

// Rates are peak rates in 10¹² operations a second, without sparsity and, on
// tensor cores, with fp32 accumulation. A type that the hardware does not have
// is 0.
type Rates struct {
	FP32 float64 `json:"fp32"`
	TF32 float64 `json:"tf32,omitempty"`
	BF16 float64 `json:"bf16,omitempty"`
	FP16 float64 `json:"fp16,omitempty"`
}

// Price is what an hour of a card costs somewhere.
type Price struct {
	USDPerHour float64 `json:"usd_per_hour"`
	Provider   string  `json:"provider"`
	Market     string  `json:"market,omitempty"` // list for a list price, spot or marketplace for one that changes by the hour
	Source     string  `json:"source"`
	AsOf       string  `json:"as_of"`
}

// Capability is a CUDA compute capability, "8.6" in JSON.
type Capability struct{ Major, Minor int }

// String writes the capability as NVIDIA does.
func (c Capability) String() string { return fmt.Sprintf("%d.%d", c.Major, c.Minor) }

// MarshalText implements encoding.TextMarshaler.
func (c Capability) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Capability) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscanf(string(text), "%d.%d", &c.Major, &c.Minor); err != nil || c.String() != string(text) {
		return fmt.Errorf("compute capability %q: write it as 8.6", text)
	}
	return nil
}

// Usable returns what the allocator can reserve: the memory less the context.
func (c *Card) Usable() bytesize.Bytes { return c.Memory.Bytes - c.Context.Bytes }

// HasBF16 reports whether the card computes in bf16. Those before Ampere have
// fp16, and PyTorch emulates bf16 on them. A card that is not known to be older
// has it.
func (c *Card) HasBF16() bool {
	return c.ComputeCapability == Capability{} || c.ComputeCapability.Major >= 8
}

// HasTF32 reports whether the card's tensor cores take fp32.
func (c *Card) HasTF32() bool { return c.HasBF16() }

//go:embed catalog.json
var catalog []byte

var load = sync.OnceValue(func() []*Card {
	var file struct {
		Cards []*Card `json:"cards"`
	}
	if err := json.Unmarshal(catalog, &file); err != nil {
		panic(fmt.Sprintf("gpu: catalog.json: %v", err)) // it is part of the program
	}
	return file.Cards
})

// All returns the cards of the catalog, in its order.
func All() []*Card { return slices.Clone(load()) }

// Find returns the card of an id or an alias, in whatever case. The error for
// an unknown one names similar ones.
func Find(id string) (*Card, error) {
	name := strings.ToLower(strings.TrimSpace(id))
	dashed := strings.ReplaceAll(name, " ", "-") // as for "RTX 4090"
	for _, c := range load() {
		if c.ID == dashed || strings.ToLower(c.Name) == name || slices.Contains(c.Aliases, name) || slices.Contains(c.Aliases, dashed) {
			return c, nil
		}
	}
	return nil, &UnknownError{ID: id, Near: near(name)}
}

// Default is the id of the card of a question without one, if the machine has
// no GPU.
const Default = "a10"

// Unnamed returns the card of a question that names none: this machine's, or the
// default.
func Unnamed(here *Card, otherwise string) (*Card, error) {
	if here != nil {
		return here, nil
	}
	return Find(otherwise)
}

// near returns the ids of cards whose id or alias is similar to a name.
func near(name string) []string {
	ids := make(map[string]string)
	var known, out []string
	for _, c := range load() {
		for _, k := range append([]string{c.ID}, c.Aliases...) {
			ids[k] = c.ID
			known = append(known, k)
		}
	}
	for _, k := range nearest.To(name, known) {
		if !slices.Contains(out, ids[k]) {
			out = append(out, ids[k])
		}
	}
	return out
}

// UnknownError says that the catalog has no such card.
type UnknownError struct {
	ID   string
	Near []string // similar ids
}

func (e *UnknownError) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("gpu %q is not in the catalog", e.ID)
	}
	return fmt.Sprintf("gpu %q is not in the catalog; similar: %s", e.ID, strings.Join(e.Near, ", "))
}
