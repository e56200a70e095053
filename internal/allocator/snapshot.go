package allocator

import (
	"cmp"
	"slices"

	"memorymark/internal/trace"
)

// snapshot returns what the allocator holds, as a snapshot would show it: by
// address, an expandable segment as one entry for each contiguous mapped range.
func (a *cachingAllocator) snapshot() []trace.Segment {
	var out []trace.Segment
	for h := range a.blocks.slots {
		b := &a.blocks.slots[h]
		isHead := b.used && b.mapped && (b.prev == noBlock || !a.blocks.at(b.prev).mapped)
		if isHead {
			out = append(out, a.segmentFrom(blockIndex(h)))
		}
	}
	slices.SortFunc(out, func(x, y trace.Segment) int { return cmp.Compare(x.Addr, y.Addr) })
	return out
}

func (a *cachingAllocator) segmentFrom(h blockIndex) trace.Segment {
	head := a.blocks.at(h)
	s := trace.Segment{
		Addr: head.addr, Stream: head.stream, Pool: head.pool.id, Small: head.pool.isSmall,
		Expandable: head.expandable != nil, Stack: head.segmentStack,
	}
	for h != noBlock && a.blocks.at(h).mapped {
		b := a.blocks.at(h)
		s.Size += b.size
		s.Blocks = append(s.Blocks, trace.Block{
			Addr: b.addr, Size: b.size, Requested: b.requested, Stack: b.stack, State: b.state(), ID: b.id,
		})
		h = b.next
	}
	return s
}

func (b *block) state() trace.State {
	switch {
	case b.allocated:
		return trace.Allocated
	case b.pending:
		return trace.PendingFree
	default:
		return trace.Inactive
	}
}

// seed gives an allocator that holds nothing the state of another: segments
// with the blocks in them. The handles of blocks in use come back by ID.
// Statistics start from that state, as if their peaks and sums had been reset.
func (a *cachingAllocator) seed(segments []trace.Segment) map[trace.ID]blockIndex {
	handles := make(map[trace.ID]blockIndex)
	expandable := make(map[expandableKey]blockIndex)
	for i := range segments {
		s := &segments[i]
		p := a.poolOf(s.Pool, s.Small)
		last := noBlock
		var r *expandableSegment
		if s.Expandable {
			r, last = a.seedExpandable(expandable, p, s)
		} else {
			a.stats.Segments.add(s.Small, 1)
		}
		a.stats.ReservedBytes.add(s.Small, s.Size)
		last = a.seedBlocks(s, p, r, last, handles)
		if s.Expandable {
			expandable[expandableKey{p, s.Stream}] = last
		} else if s.Size >= a.maxSplit {
			a.stats.OversizeSegments.add(1)
		}
	}
	for _, last := range expandable {
		a.seedExpandableEnd(last)
	}
	a.stats.resetPeaks()
	a.stats.resetSums()
	return handles
}

// seedBlocks adds the blocks of a segment behind the block before, and returns
// the last one.
func (a *cachingAllocator) seedBlocks(s *trace.Segment, p *blockPool, r *expandableSegment, before blockIndex, handles map[trace.ID]blockIndex) blockIndex {
	var free []blockIndex
	for _, tb := range s.Blocks {
		h := a.blocks.add(block{
			addr: tb.Addr, size: tb.Size, requested: tb.Requested, stream: s.Stream, pool: p, expandable: r,
			prev: before, next: noBlock, mapped: true, id: tb.ID, stack: tb.Stack,
			allocated: tb.State == trace.Allocated,
		})
		if before != noBlock {
			a.blocks.at(before).next = h
		}
		before = h
		switch tb.State {
		case trace.Inactive:
			free = append(free, h)
			if r == nil && len(s.Blocks) > 1 {
				a.stats.InactiveSplit.add(s.Small, 1)
				a.stats.InactiveSplitBytes.add(s.Small, tb.Size)
			}
			continue
		case trace.PendingFree:
			a.insertEvent(h)
		default:
			a.stats.Allocations.add(s.Small, 1)
			a.stats.AllocatedBytes.add(s.Small, tb.Size)
			if tb.Size >= a.maxSplit {
				a.stats.OversizeAllocations.add(1)
			}
		}
		a.stats.Active.add(s.Small, 1)
		a.stats.ActiveBytes.add(s.Small, tb.Size)
		a.stats.RequestedBytes.add(s.Small, tb.Requested)
		handles[tb.ID] = h
	}
	for _, h := range free {
		a.insertFree(h) // now that all neighbours are known
	}
	return before
}

// expandableKey says which expandable segment a range belongs to: PyTorch makes one
// for each pool and stream, and another only when its address space is used up.
type expandableKey struct {
	pool   *blockPool
	stream uint16
}

// seedExpandable returns the address space that a mapped range of an expandable segment
// belongs to, and the block before the range.
func (a *cachingAllocator) seedExpandable(expandable map[expandableKey]blockIndex, p *blockPool, s *trace.Segment) (*expandableSegment, blockIndex) {
	last, ok := expandable[expandableKey{p, s.Stream}]
	if !ok {
		return &expandableSegment{s.Addr, pageSize(s.Small)}, noBlock
	}
	b := a.blocks.at(last)
	gap := int64(s.Addr - b.addr - uint64(b.size))
	return b.expandable, a.addUnmapped(last, gap)
}

// seedExpandableEnd adds the unmapped rest of an expandable segment's address space.
func (a *cachingAllocator) seedExpandableEnd(last blockIndex) {
	b := a.blocks.at(last)
	end := b.expandable.base + addressSpace/uint64(b.expandable.page)*uint64(b.expandable.page)
	if rest := int64(end - b.addr - uint64(b.size)); rest > 0 {
		a.addUnmapped(last, rest)
	}
}

// addUnmapped puts an unmapped block behind another.
func (a *cachingAllocator) addUnmapped(before blockIndex, size int64) blockIndex {
	b := a.blocks.at(before)
	addr, stream, p := b.addr+uint64(b.size), b.stream, b.pool
	h := a.blocks.add(block{addr: addr, size: size, stream: stream, pool: p, expandable: b.expandable, prev: before, next: noBlock, id: trace.None})
	a.blocks.at(before).next = h
	p.insertUnmapped(stream, addr, h)
	return h
}
