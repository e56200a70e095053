// Package request is what a scheduler needs to place a training job: the memory of
// each GPU, with everything that the allocator does not count, in the words of
// Kubernetes, its plug-ins, Slurm and SkyPilot.
package request

import (
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
)

// Need is what a job needs of each of its GPUs.
type Need struct {
	Name   string          `json:"name"`
	Engine evidence.Engine `json:"engine"`
	GPU    string          `json:"gpu"` // the card that it was found for
	GPUs   int64           `json:"gpus"`
	// Reserved is PyTorch's peak; Context is what CUDA and its libraries use outside
	// the allocator, and Driver what the driver keeps: nvidia-smi counts it, CUDA does not.
	Reserved bytesize.Bytes `json:"reserved_bytes"`
	Context  bytesize.Bytes `json:"context_bytes"`
	Driver   bytesize.Bytes `json:"driver_bytes"`
	// MiB is the sum of these, as schedulers count memory.
	MiB int64 `json:"mib"`
	// Cards are ids of the catalog's cards with that much memory, the smallest first.
	Cards []string `json:"cards"`
}

// New returns the need of a job whose processes reserve so much on a card.
func New(name string, engine evidence.Engine, card *gpu.Card, gpus int64, reserved bytesize.Bytes) *Need {
	n := &Need{
		Name: name, Engine: engine, GPU: card.ID, GPUs: max(gpus, 1),
		Reserved: reserved, Context: card.Context.Bytes, Driver: driverReserve(card),
		Cards: []string{},
	}
	n.MiB = int64((n.Reserved + n.Context + n.Driver + bytesize.MiB - 1) / bytesize.MiB)
	cards := slices.DeleteFunc(gpu.All(), func(c *gpu.Card) bool { return c.Usable() < reserved })
	slices.SortStableFunc(cards, func(a, b *gpu.Card) int { return int(a.Memory.Bytes - b.Memory.Bytes) })
	for _, c := range cards {
		n.Cards = append(n.Cards, c.ID)
	}
	return n
}

// Capacity is the least memory of a card, as nvidia-smi and device plug-ins report it,
// on which the job has what it needs.
func (n *Need) Capacity() bytesize.Bytes { return bytesize.Bytes(n.MiB) * bytesize.MiB }

// driverReserve estimates the memory that nvidia-smi counts and CUDA does not report:
// 265 MiB of a T4, 429 of an A10, 543 of an L4, 357 of an RTX 4090, 470 of an H100,
// 762 of an A100 with 80 GB. The estimate is above all of these.
func driverReserve(card *gpu.Card) bytesize.Bytes {
	const share, most = 40, 768 * bytesize.MiB
	return min(card.Memory.Bytes/share, most)
}
