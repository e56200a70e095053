package allocator

import "memorymark/internal/trace"

const noBlock blockIndex = -1

// block is a piece of a segment, in a chain of neighbours by address. Blocks
// live in an arena and point to each other by index, so that a steady state
// allocates no Go memory and the collector has nothing to follow.
type block struct {
	addr        uint64
	size        int64
	requested   int64 // stays as it was when the block is freed, as in PyTorch
	gcCountBase int64 // the pool's search count when it became free (R14)
	pool        *blockPool
	expandable  *expandableSegment // the expandable segment it is in, nil in others
	prev        blockIndex
	next        blockIndex
	id          trace.ID
	stack       trace.StackID
	// segmentStack is who caused the segment. A split leaves it with the
	// remainder (R8), so that it is often lost, as in PyTorch.
	segmentStack trace.StackID
	index        int32 // in cachingAllocator.cudaEvents while it is pending, in blockPool.releasable while it is free
	stream       uint16
	allocated    bool
	pending      bool // given back, waiting for another stream
	mapped       bool // has memory behind it
	used         bool // false for a free slot of the arena
}

// isReleasable reports whether a free block is a whole segment, or holds a
// whole page of an expandable one (R13). It does not change while the block is
// free: what is next to it cannot become free without merging with it.
func (b *block) isReleasable() bool {
	if b.expandable == nil {
		return b.prev == noBlock && b.next == noBlock
	}
	first, end := b.pages()
	return first < end
}

// pages returns the whole pages in a block of an expandable segment.
func (b *block) pages() (first, end uint64) {
	base, page := b.expandable.base, uint64(b.expandable.page)
	return base + (b.addr-base+page-1)/page*page, base + (b.addr-base+uint64(b.size))/page*page
}

// expandableSegment is the address space of an expandable segment.
type expandableSegment struct {
	base uint64
	page int64
}

type arena struct {
	slots []block
	spare []blockIndex
}

func (a *arena) at(h blockIndex) *block { return &a.slots[h] }

// add stores a block and returns its handle. Pointers from at are then stale.
func (a *arena) add(b block) blockIndex {
	b.used = true
	if n := len(a.spare); n > 0 {
		h := a.spare[n-1]
		a.spare = a.spare[:n-1]
		a.slots[h] = b
		return h
	}
	a.slots = append(a.slots, b)
	return blockIndex(len(a.slots) - 1)
}

func (a *arena) drop(h blockIndex) {
	a.slots[h] = block{}
	a.spare = append(a.spare, h)
}
