package gpu

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// MachineGPUs is how many GPUs a machine has at the most, as machines of cloud
// providers do.
const MachineGPUs = 8

// Link is how the GPUs of a machine reach each other.
type Link struct {
	Path
	AsOf    string   `json:"as_of"`
	Cards   []string `json:"cards"`             // ids
	Network *Path    `json:"network,omitempty"` // between machines; nil if no figure was found
}

// Path is a way for bytes from a GPU to another.
type Path struct {
	Name    string  `json:"name"`
	GBPerS  float64 `json:"gb_per_s"` // for one GPU, in one direction, in 10⁹ bytes
	Reached float64 `json:"reached"`  // the share of it that NCCL reaches
	Source  string  `json:"source"`
}

// BytesPerSecond is the rate that NCCL reaches for each GPU.
func (p *Path) BytesPerSecond() float64 { return p.GBPerS * 1e9 * p.Reached }

//go:embed links.json
var linksFile []byte

var loadLinks = sync.OnceValue(func() []*Link {
	var file struct {
		Links []*Link `json:"links"`
	}
	if err := json.Unmarshal(linksFile, &file); err != nil {
		panic(fmt.Sprintf("gpu: links.json: %v", err)) // it is part of the program
	}
	return file.Links
})

// Link returns how several such cards reach each other, nil if no figure was
// found.
func (c *Card) Link() *Link {
	for _, l := range loadLinks() {
		if slices.Contains(l.Cards, c.ID) {
			return l
		}
	}
	return nil
}

// MostGPUs is how many such cards can be used together, as far as is known.
func (c *Card) MostGPUs() int64 {
	switch link := c.Link(); {
	case link == nil:
		return 1
	case link.Network == nil:
		return MachineGPUs
	default:
		return 1 << 20
	}
}

// BusBytesPerSecond is the rate at which each of so many GPUs sends and
// receives in a large collective: NCCL's bus bandwidth. Over machines, its rings
// run over the network card of every GPU at once, so that those of a machine
// add up, up to what the GPUs of a machine reach among themselves.
func (l *Link) BusBytesPerSecond(gpus int64) float64 {
	within := l.BytesPerSecond()
	if gpus <= MachineGPUs || l.Network == nil {
		return within
	}
	return min(within, MachineGPUs*l.Network.BytesPerSecond())
}

// AcrossBytesPerSecond is the rate at which a GPU reaches those of other
// machines that have the same place: what copies of a sharded model tell each
// other.
func (l *Link) AcrossBytesPerSecond() float64 {
	if l.Network == nil {
		return l.BytesPerSecond()
	}
	return l.Network.BytesPerSecond()
}
