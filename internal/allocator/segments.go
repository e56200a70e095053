package allocator

import (
	"cmp"
	"slices"

	"memorymark/internal/trace"
)

// Segments returns what the allocator holds, as a snapshot would show it: by
// address, an expandable segment as one entry for each contiguous mapped range.
func (a *Allocator) Segments() []trace.Segment {
	var out []trace.Segment
	for h := range a.blocks.slots {
		b := &a.blocks.slots[h]
		isHead := b.used && b.mapped && (b.prev == none || !a.blocks.at(b.prev).mapped)
		if isHead {
			out = append(out, a.segmentFrom(Handle(h)))
		}
	}
	slices.SortFunc(out, func(x, y trace.Segment) int { return cmp.Compare(x.Addr, y.Addr) })
	return out
}

func (a *Allocator) segmentFrom(h Handle) trace.Segment {
	head := a.blocks.at(h)
	s := trace.Segment{
		Addr: head.addr, Stream: head.stream, Pool: head.pool.id, Small: head.pool.small,
		Expandable: head.room != nil, Stack: head.segmentStack,
	}
	for h != none && a.blocks.at(h).mapped {
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

// Seed gives an allocator that holds nothing the state of another: segments
// with the blocks in them. The handles of blocks in use come back by ID.
// Statistics start from that state, as if their peaks and sums had been reset.
func (a *Allocator) Seed(segments []trace.Segment) map[trace.ID]Handle {
	handles := make(map[trace.ID]Handle)
	rooms := make(map[roomKey]Handle)
	for i := range segments {
		s := &segments[i]
		p := a.poolOf(s.Pool, s.Small)
		last := none
		var r *room
		if s.Expandable {
			r, last = a.seedRoom(rooms, p, s)
		} else {
			a.stats.Segments.add(s.Small, 1)
		}
		a.stats.ReservedBytes.add(s.Small, s.Size)
		last = a.seedBlocks(s, p, r, last, handles)
		if s.Expandable {
			rooms[roomKey{p, s.Stream}] = last
		} else if s.Size >= a.maxSplit {
			a.stats.OversizeSegments.add(1)
		}
	}
	for _, last := range rooms {
		a.seedRoomEnd(last)
	}
	a.stats.ResetPeaks()
	a.stats.ResetSums()
	return handles
}

// seedBlocks adds the blocks of a segment behind the block before, and returns
// the last one.
func (a *Allocator) seedBlocks(s *trace.Segment, p *pool, r *room, before Handle, handles map[trace.ID]Handle) Handle {
	var free []Handle
	for _, tb := range s.Blocks {
		h := a.blocks.add(block{
			addr: tb.Addr, size: tb.Size, requested: tb.Requested, stream: s.Stream, pool: p, room: r,
			prev: before, next: none, mapped: true, id: tb.ID, stack: tb.Stack,
			allocated: tb.State == trace.Allocated,
		})
		if before != none {
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
			a.addPending(h)
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

// roomKey says which expandable segment a range belongs to: PyTorch makes one
// for each pool and stream, and another only when its room is used up.
type roomKey struct {
	pool   *pool
	stream uint16
}

// seedRoom returns the room that a mapped range of an expandable segment
// belongs to, and the block before the range.
func (a *Allocator) seedRoom(rooms map[roomKey]Handle, p *pool, s *trace.Segment) (*room, Handle) {
	last, ok := rooms[roomKey{p, s.Stream}]
	if !ok {
		return &room{s.Addr, pageSize(s.Small)}, none
	}
	b := a.blocks.at(last)
	gap := int64(s.Addr - b.addr - uint64(b.size))
	return b.room, a.addRoom(last, gap)
}

// seedRoomEnd adds the unmapped rest of an expandable segment's room.
func (a *Allocator) seedRoomEnd(last Handle) {
	b := a.blocks.at(last)
	end := b.room.base + roomBytes/uint64(b.room.page)*uint64(b.room.page)
	if rest := int64(end - b.addr - uint64(b.size)); rest > 0 {
		a.addRoom(last, rest)
	}
}

// addRoom puts an unmapped block behind another.
func (a *Allocator) addRoom(before Handle, size int64) Handle {
	b := a.blocks.at(before)
	addr, stream, p := b.addr+uint64(b.size), b.stream, b.pool
	h := a.blocks.add(block{addr: addr, size: size, stream: stream, pool: p, room: b.room, prev: before, next: none, id: trace.None})
	a.blocks.at(before).next = h
	p.insertUnmapped(stream, addr, h)
	return h
}
