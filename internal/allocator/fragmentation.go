package allocator

import (
	"cmp"
	"slices"

	"memorymark/internal/trace"
)

// Fragmentation says how much of what the allocator holds is free but of no
// use for other requests.
type Fragmentation struct {
	Reserved  int64 // held from the driver
	Allocated int64 // in use, pending frees included
	Free      int64 // the rest
	Stuck     int64 // free, but in segments that something in use pins
	Largest   int64 // largest free piece: no request above it is met without a new segment
	Pieces    int   // number of free pieces
	Pins      []Pin // segments with stuck memory, most stuck first
}

// Score is the share of what is held that is stuck, from 0 (none) to 1.
func (f *Fragmentation) Score() float64 {
	if f.Reserved == 0 {
		return 0
	}
	return float64(f.Stuck) / float64(f.Reserved)
}

// Pin is a segment that cannot be returned although much of it is free.
type Pin struct {
	Segment trace.Segment
	Stuck   int64
	InUse   int64
	Blocks  []trace.Block // those in use, smallest first
}

// Fragment examines what an allocator holds.
func Fragment(segments []trace.Segment) Fragmentation {
	var f Fragmentation
	for _, s := range segments {
		pin := Pin{Segment: withoutBlocks(s)}
		for _, b := range s.Blocks {
			if b.State != trace.Inactive {
				pin.InUse += b.Size
				pin.Blocks = append(pin.Blocks, b)
				continue
			}
			f.Free += b.Size
			f.Pieces++
			f.Largest = max(f.Largest, b.Size)
			pin.Stuck += b.Size - returnable(&s, b)
		}
		f.Reserved += s.Size
		f.Allocated += pin.InUse
		if pin.Stuck == 0 || len(pin.Blocks) == 0 {
			continue
		}
		f.Stuck += pin.Stuck
		slices.SortFunc(pin.Blocks, func(a, b trace.Block) int {
			return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Addr, b.Addr))
		})
		f.Pins = append(f.Pins, pin)
	}
	slices.SortStableFunc(f.Pins, func(a, b Pin) int { return cmp.Compare(b.Stuck, a.Stuck) })
	return f
}

// returnable is how much of a free block the driver could have back (R13).
func returnable(s *trace.Segment, b trace.Block) int64 {
	if !s.Expandable {
		if b.Size == s.Size {
			return b.Size
		}
		return 0
	}
	page := uint64(pageSize(s.Small))
	first := (b.Addr - s.Addr + page - 1) / page
	end := (b.Addr - s.Addr + uint64(b.Size)) / page
	if end <= first {
		return 0
	}
	return int64((end - first) * page)
}
