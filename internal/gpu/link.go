package gpu

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// MachineGPUs is the maximum number of GPUs in a machine, as cloud providers
// offer them.
const MachineGPUs = 8

// Link is how the GPUs of a machine are connected.
type Link struct {
	Path
	AsOf    string   `json:"as_of"`
	Cards   []string `json:"cards"`             // ids
	Network *Path    `json:"network,omitempty"` // between machines; nil if no figure was found
}

// Path is a connection between GPUs.
type Path struct {
	Name    string  `json:"name"`
	GBPerS  float64 `json:"gb_per_s"` // for one GPU, in one direction, in 10⁹ bytes
	Reached float64 `json:"reached"`  // the share of it that NCCL achieves
	Source  string  `json:"source"`
}

// BytesPerSecond is the rate that NCCL achieves for each GPU.
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

// Link returns how several such cards are connected, nil if no figure was
// found.
func (c *Card) Link() *Link {
	for _, l := range loadLinks() {
		if slices.Contains(l.Cards, c.ID) {
			return l
		}
	}
	return nil
}

// MaxGPUs returns how many such cards can be used together, as far as is known.
func (c *Card) MaxGPUs() int64 {
	switch link := c.Link(); {
	case link == nil:
		return 1
	case link.Network == nil:
		return MachineGPUs
	default:
		return 1 << 20
	}
}

// BusBytesPerSecond is the rate at which each of n GPUs sends and receives in a
// large collective: NCCL's bus bandwidth. Between machines, its rings use the
// network cards of all GPUs at once, so their rates add up, to at most the rate
// within a machine.
func (l *Link) BusBytesPerSecond(gpus int64) float64 {
	within := l.BytesPerSecond()
	if gpus <= MachineGPUs || l.Network == nil {
		return within
	}
	return min(within, MachineGPUs*l.Network.BytesPerSecond())
}

// AcrossBytesPerSecond is the rate between a GPU and its counterparts in other
// machines, as for the copies of a sharded model.
func (l *Link) AcrossBytesPerSecond() float64 {
	if l.Network == nil {
		return l.BytesPerSecond()
	}
	return l.Network.BytesPerSecond()
}
