package allocator

import "memorymark/internal/trace"

// This file is R15: segments that grow and shrink by pages inside a reserved
// range of addresses.

func pageSize(small bool) int64 {
	if small {
		return smallSegment
	}
	return largeSegment
}

// expand maps enough pages for size at the lowest address that has room, and
// returns the free block that then holds it, in no free set.
func (a *Allocator) expand(p *pool, r Request, size int64) Handle {
	h := a.findRoom(p, r.Stream, size)
	if h == none {
		return none
	}
	if !a.blocks.at(h).mapped {
		if h = a.mapPages(h, min(a.blocks.at(h).size, size), r.Stack); h == none {
			return none
		}
	}
	for a.blocks.at(h).size < size {
		b := a.blocks.at(h)
		// A free block is followed by room: findRoom saw to it.
		rest := min(size-b.size, a.blocks.at(b.next).size)
		if h = a.mapPages(b.next, rest, r.Stack); h == none {
			return none
		}
	}
	a.removeFree(h)
	return h
}

// findRoom returns the first block of a run of free and unmapped blocks that
// has size bytes of address space, reserving more if there is none; none if a
// whole reservation would not do.
func (a *Allocator) findRoom(p *pool, stream uint16, size int64) Handle {
	set := &p.of(stream).unmapped
	for at := (place{}); set.has(at); at = set.next(at) {
		a.work++
		h := set.get(at).block
		if before := a.blocks.at(h).prev; a.allocatable(before) {
			h = before
		}
		if a.hasAddressSpace(h, size) {
			return h
		}
	}
	page := pageSize(p.small)
	addr, reserved := a.driver.Reserve(page)
	if reserved < size {
		return none
	}
	h := a.blocks.add(block{
		addr: addr, size: reserved, stream: stream, pool: p, room: &room{addr, page},
		prev: none, next: none, id: trace.None,
	})
	p.insertUnmapped(stream, addr, h)
	return h
}

func (a *Allocator) allocatable(h Handle) bool {
	if h == none {
		return false
	}
	b := a.blocks.at(h)
	return !b.allocated && !b.pending
}

func (a *Allocator) hasAddressSpace(h Handle, size int64) bool {
	bytes := int64(0)
	for bytes < size && a.allocatable(h) {
		a.work++
		b := a.blocks.at(h)
		bytes += b.size
		h = b.next
	}
	return bytes >= size
}

// mapPages puts memory behind the first size bytes of an unmapped block, in
// whole pages, and returns the free block it then is part of.
func (a *Allocator) mapPages(h Handle, size int64, stack trace.StackID) Handle {
	b := a.blocks.at(h)
	mapped := (size + b.room.page - 1) / b.room.page * b.room.page
	if !a.driver.Map(b.addr, mapped) {
		return none
	}
	p := b.pool
	p.removeUnmapped(b.stream, b.addr)
	b.mapped = true
	if mapped < b.size {
		rest := a.cutHigh(h, b.size-mapped)
		b = a.blocks.at(h)
		p.insertUnmapped(b.stream, a.blocks.at(rest).addr, rest)
	}
	a.merge(h, b.prev)
	a.merge(h, b.next)
	a.insertFree(h)
	if b.prev == none && b.segmentStack == 0 {
		b.segmentStack = stack
	}
	a.stats.DeviceAllocs++
	a.stats.ReservedBytes.add(p.small, mapped)
	return h
}

// unmap takes the memory from behind the whole pages of a free block, which must
// have some. What is left of the block at either end stays free.
func (a *Allocator) unmap(h Handle) {
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
	a.merge(h, b.prev)
	a.merge(h, b.next)
	a.stats.DeviceFrees++
	a.stats.ReservedBytes.sub(b.pool.small, int64(end-first))
	a.driver.Unmap(first, int64(end-first))
	if b.prev == none && b.next == none {
		a.blocks.drop(h) // nothing is left of the segment: its room goes too
		return
	}
	b.pool.insertUnmapped(b.stream, b.addr, h)
}

// cutHigh makes the high end of a block a block of its own, without memory
// and in no set.
func (a *Allocator) cutHigh(h Handle, size int64) Handle {
	b := a.blocks.at(h)
	b.size -= size
	high := a.blocks.add(block{
		addr: b.addr + uint64(b.size), size: size, stream: b.stream, pool: b.pool, room: b.room,
		prev: h, next: b.next, id: trace.None,
	})
	b = a.blocks.at(h)
	if b.next != none {
		a.blocks.at(b.next).prev = high
	}
	b.next = high
	return high
}
