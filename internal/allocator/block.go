package allocator

import "memorymark/internal/trace"

const none Handle = -1

// block is a piece of a segment, in a chain of neighbours by address. Blocks
// live in an arena and point to each other by index, so that a steady state
// allocates no Go memory and the collector has nothing to follow.
type block struct {
	addr      uint64
	size      int64
	requested int64 // stays as it was when the block is freed, as in PyTorch
	age       int64 // the pool's search count when it became free (R14)
	pool      *pool
	room      *room // the expandable segment it is in, nil in others
	prev      Handle
	next      Handle
	id        trace.ID
	stack     trace.StackID
	// segmentStack is who caused the segment. A split leaves it with the
	// remainder (R8), so that it is often lost, as in PyTorch.
	segmentStack trace.StackID
	place        int32 // in Allocator.pending while it is pending, in pool.whole while it is free
	stream       uint16
	allocated    bool
	pending      bool // given back, waiting for another stream
	mapped       bool // has memory behind it
	used         bool // false for a free slot of the arena
}

// isReturnable reports whether a free block is a whole segment, or holds a
// whole page of an expandable one (R13). It does not change while the block is
// free: what is beside it cannot become free without merging with it.
func (b *block) isReturnable() bool {
	if b.room == nil {
		return b.prev == none && b.next == none
	}
	first, end := b.pages()
	return first < end
}

// pages returns the whole pages in a block of an expandable segment.
func (b *block) pages() (first, end uint64) {
	base, page := b.room.base, uint64(b.room.page)
	return base + (b.addr-base+page-1)/page*page, base + (b.addr-base+uint64(b.size))/page*page
}

// room is the address space of an expandable segment.
type room struct {
	base uint64
	page int64
}

type arena struct {
	slots []block
	spare []Handle
}

func (a *arena) at(h Handle) *block { return &a.slots[h] }

// add stores a block and returns its handle. Pointers from at are then stale.
func (a *arena) add(b block) Handle {
	b.used = true
	if n := len(a.spare); n > 0 {
		h := a.spare[n-1]
		a.spare = a.spare[:n-1]
		a.slots[h] = b
		return h
	}
	a.slots = append(a.slots, b)
	return Handle(len(a.slots) - 1)
}

func (a *arena) drop(h Handle) {
	a.slots[h] = block{}
	a.spare = append(a.spare, h)
}
