package allocator

import "memorymark/internal/trace"

// This file is R15: segments that grow and shrink by pages inside a reserved
// range of addresses.

func pageSize(small bool) int64 {
	if small {
		return smallBuffer
	}
	return largeBuffer
}

// tryAllocateExpandableBlock maps enough pages for size at the lowest address where they fit, and
// returns the free block that then holds it, in no free set.
func (a *cachingAllocator) tryAllocateExpandableBlock(p *blockPool, r request, size int64) blockIndex {
	h := a.findExpandableBlock(p, r.Stream, size)
	if h == noBlock {
		return noBlock
	}
	if !a.blocks.at(h).mapped {
		if h = a.mapBlock(h, min(a.blocks.at(h).size, size), r.Stack); h == noBlock {
			return noBlock
		}
	}
	for a.blocks.at(h).size < size {
		b := a.blocks.at(h)
		// A free block is followed by address space: findExpandableBlock checked it.
		rest := min(size-b.size, a.blocks.at(b.next).size)
		if h = a.mapBlock(b.next, rest, r.Stack); h == noBlock {
			return noBlock
		}
	}
	a.removeFree(h)
	return h
}

// findExpandableBlock returns the first block of a run of free and unmapped blocks that
// has size bytes of address space, reserving more if there is none; none if a
// whole reservation would not do.
func (a *cachingAllocator) findExpandableBlock(p *blockPool, stream uint16, size int64) blockIndex {
	set := &p.of(stream).unmapped
	for at := (position{}); set.has(at); at = set.next(at) {
		a.work++
		h := set.get(at).block
		if before := a.blocks.at(h).prev; a.allocatable(before) {
			h = before
		}
		if a.hasAddressSpace(h, size) {
			return h
		}
	}
	page := pageSize(p.isSmall)
	addr, reserved := a.driver.reserve(page)
	if reserved < size {
		return noBlock
	}
	h := a.blocks.add(block{
		addr: addr, size: reserved, stream: stream, pool: p, expandable: &expandableSegment{addr, page},
		prev: noBlock, next: noBlock, id: trace.None,
	})
	p.insertUnmapped(stream, addr, h)
	return h
}

func (a *cachingAllocator) allocatable(h blockIndex) bool {
	if h == noBlock {
		return false
	}
	b := a.blocks.at(h)
	return !b.allocated && !b.pending
}

func (a *cachingAllocator) hasAddressSpace(h blockIndex, size int64) bool {
	bytes := int64(0)
	for bytes < size && a.allocatable(h) {
		a.work++
		b := a.blocks.at(h)
		bytes += b.size
		h = b.next
	}
	return bytes >= size
}

// mapBlock puts memory behind the first size bytes of an unmapped block, in
// whole pages, and returns the free block it then is part of.
func (a *cachingAllocator) mapBlock(h blockIndex, size int64, stack trace.StackID) blockIndex {
	b := a.blocks.at(h)
	mapped := (size + b.expandable.page - 1) / b.expandable.page * b.expandable.page
	if !a.driver.mapPages(b.addr, mapped) {
		return noBlock
	}
	p := b.pool
	p.removeUnmapped(b.stream, b.addr)
	b.mapped = true
	if mapped < b.size {
		rest := a.cutHigh(h, b.size-mapped)
		b = a.blocks.at(h)
		p.insertUnmapped(b.stream, a.blocks.at(rest).addr, rest)
	}
	a.tryMergeBlocks(h, b.prev)
	a.tryMergeBlocks(h, b.next)
	a.insertFree(h)
	if b.prev == noBlock && b.segmentStack == 0 {
		b.segmentStack = stack
	}
	a.stats.DeviceAllocs++
	a.stats.ReservedBytes.add(p.isSmall, mapped)
	return h
}

// unmapBlock takes the memory from behind the whole pages of a free block, which must
// have some. What is left of the block at either end stays free.
func (a *cachingAllocator) unmapBlock(h blockIndex) {
	b := a.blocks.at(h)
	first, end := b.pages()
	a.removeFree(h)
	if after := int64(b.addr + uint64(b.size) - end); after > 0 {
		rest := a.cutHigh(h, after)
		a.blocks.at(rest).mapped = true
		a.insertFree(rest)
	}
	if before := int64(first - a.blocks.at(h).addr); before > 0 {
		low := h
		h = a.cutHigh(low, a.blocks.at(low).size-before)
		// The unmapped part stays the old block, with what it remembers.
		old, cut := a.blocks.at(low), a.blocks.at(h)
		cut.requested, old.requested = old.requested, 0
		cut.segmentStack, old.segmentStack = old.segmentStack, 0
		a.insertFree(low)
	}
	b = a.blocks.at(h)
	b.mapped = false
	a.tryMergeBlocks(h, b.prev)
	a.tryMergeBlocks(h, b.next)
	a.stats.DeviceFrees++
	a.stats.ReservedBytes.sub(b.pool.isSmall, int64(end-first))
	a.driver.unmapPages(first, int64(end-first))
	if b.prev == noBlock && b.next == noBlock {
		a.blocks.drop(h) // nothing is left of the segment, so its address space is freed too
		return
	}
	b.pool.insertUnmapped(b.stream, b.addr, h)
}

// cutHigh makes the high end of a block a block of its own, without memory
// and in no set.
func (a *cachingAllocator) cutHigh(h blockIndex, size int64) blockIndex {
	b := a.blocks.at(h)
	b.size -= size
	high := a.blocks.add(block{
		addr: b.addr + uint64(b.size), size: size, stream: b.stream, pool: b.pool, expandable: b.expandable,
		prev: h, next: b.next, id: trace.None,
	})
	b = a.blocks.at(h)
	if b.next != noBlock {
		a.blocks.at(b.next).prev = high
	}
	b.next = high
	return high
}
