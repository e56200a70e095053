package allocator

import (
	"cmp"
	"fmt"
	"slices"

	"memorymark/internal/trace"
)

// This file reconstructs what an allocator held when a recording began. The
// recording says what it held at the end; undoing the segment events gives the
// segments at the beginning, and what was live then gives their blocks.
//
// The free blocks need no record: neighbours merge at once (R9), so they are
// exactly the gaps between the live ones.

// unknownRequest marks a free block whose last request the recording does not
// show.
const unknownRequest = -1

// privateSegment is a segment of a private pool from the event that made it
// on. Before 2.12 events do not say their pool; segments that are left at the
// end do, and their addresses may have been the default pool's before.
type privateSegment struct {
	trace.Segment
	from int
}

// initialState returns the segments at the beginning of a trace, and the
// private ones that are there at the end, by address. It fails if the segment
// events do not lead to the final segments.
func initialState(t *trace.Trace) ([]trace.Segment, []privateSegment, error) {
	u := undo{segments: make(map[uint64]trace.Segment, len(t.Final)), private: make(map[uint64]*privateSegment)}
	for _, s := range t.Final {
		if s.Expandable {
			u.pages.add(withoutBlocks(s))
		} else {
			u.segments[s.Addr] = withoutBlocks(s)
		}
		if s.Pool != (trace.PoolID{}) {
			u.private[s.Addr] = &privateSegment{Segment: withoutBlocks(s)}
		}
	}
	for i := len(t.Events) - 1; i >= 0; i-- {
		if e := &t.Events[i]; e.Action.IsSegment() {
			if err := u.event(i, e, t.Notes[e.Note].Pool); err != nil {
				return nil, nil, fmt.Errorf("event %d: %s of %d bytes at %#x: %w", i, e.Action, e.Size, e.Addr, err)
			}
		}
	}
	segments := u.pages.all()
	for _, s := range u.segments {
		segments = append(segments, s)
	}
	slices.SortFunc(segments, func(a, b trace.Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	private := make([]privateSegment, 0, len(u.private))
	for _, p := range u.private {
		private = append(private, *p)
	}
	slices.SortFunc(private, func(a, b privateSegment) int { return cmp.Compare(a.Addr, b.Addr) })
	return segments, private, fillSegments(segments, t)
}

// withoutBlocks is a segment without its blocks.
func withoutBlocks(s trace.Segment) trace.Segment {
	s.Blocks = nil
	return s
}

// undo walks back through the segment events.
type undo struct {
	segments map[uint64]trace.Segment
	pages    ranges // that are mapped, of expandable segments
	private  map[uint64]*privateSegment
}

func (u *undo) event(i int, e *trace.Event, pool trace.PoolID) error {
	if e.Size <= 0 || e.Addr+uint64(e.Size) < e.Addr {
		return fmt.Errorf("there are no such addresses")
	}
	s := trace.Segment{
		Addr: e.Addr, Size: e.Size, Stream: e.Stream, Pool: pool,
		Small: e.Size == smallBuffer, // no large segment is that small (R3)
	}
	switch e.Action {
	case trace.SegmentAlloc:
		if have, ok := u.segments[e.Addr]; !ok || have.Size != e.Size {
			return fmt.Errorf("no such segment afterwards")
		}
		if p := u.private[e.Addr]; p != nil && p.from == 0 {
			p.from = i
		}
		delete(u.segments, e.Addr)
	case trace.SegmentFree:
		u.segments[e.Addr] = s
	case trace.SegmentMap:
		return u.undoMap(e.Addr, e.Size)
	case trace.SegmentUnmap:
		s.Expandable = true
		s.Small = e.Size%largeBuffer != 0 // pages of 2 MiB or of 20 MiB (R15)
		u.undoUnmap(s)
	default:
	}
	return nil
}

// undoMap undoes a segment_map: the range must lie in one mapped range.
func (u *undo) undoMap(addr uint64, size int64) error {
	s, ok := u.pages.at(addr)
	if !ok {
		return fmt.Errorf("nothing is mapped there afterwards")
	}
	before, after := int64(addr-s.Addr), int64(s.Addr+uint64(s.Size)-addr)-size
	if after < 0 {
		return fmt.Errorf("nothing is mapped there afterwards")
	}
	u.pages.remove(s.Addr)
	if before > 0 {
		low := s
		low.Size = before
		u.pages.add(low)
	}
	if after > 0 {
		high := s
		high.Addr, high.Size = addr+uint64(size), after
		u.pages.add(high)
	}
	return nil
}

// undoUnmap undoes a segment_unmap, joining the range with its neighbours.
func (u *undo) undoUnmap(s trace.Segment) {
	if next, ok := u.pages.at(s.Addr + uint64(s.Size)); ok && next.Addr == s.Addr+uint64(s.Size) && next.Stream == s.Stream {
		u.pages.remove(next.Addr)
		s.Small = next.Small
		s.Size += next.Size
	}
	if before, ok := u.pages.at(s.Addr - 1); ok && before.Addr+uint64(before.Size) == s.Addr && before.Stream == s.Stream {
		u.pages.remove(before.Addr)
		before.Size += s.Size
		s = before
	}
	u.pages.add(s)
}

// ranges is a set of segments, found by an address in them.
type ranges struct {
	byAddr freeSet // keys have no size: addresses alone are in order
	list   []trace.Segment
	spare  []blockIndex // of list
}

func (r *ranges) add(s trace.Segment) {
	h := blockIndex(len(r.list))
	if n := len(r.spare); n > 0 {
		h, r.spare = r.spare[n-1], r.spare[:n-1]
		r.list[h] = s
	} else {
		r.list = append(r.list, s)
	}
	r.byAddr.insert(freeKey{addr: s.Addr, block: h})
}

// at returns the segment that an address is in.
func (r *ranges) at(addr uint64) (s trace.Segment, ok bool) {
	place := r.byAddr.lowerBound(0, addr)
	if !r.byAddr.has(place) || r.byAddr.get(place).addr != addr {
		if place, ok = r.byAddr.previous(place); !ok {
			return s, false
		}
	}
	s = r.list[r.byAddr.get(place).block]
	return s, addr-s.Addr < uint64(s.Size)
}

// remove removes the segment that begins at an address.
func (r *ranges) remove(addr uint64) {
	place := r.byAddr.lowerBound(0, addr)
	r.spare = append(r.spare, r.byAddr.get(place).block)
	r.byAddr.remove(place)
}

func (r *ranges) all() []trace.Segment {
	var out []trace.Segment
	for at := (position{}); r.byAddr.has(at); at = r.byAddr.next(at) {
		out = append(out, r.list[r.byAddr.get(at).block])
	}
	return out
}

// fillSegments puts the initially live blocks into their segments.
func fillSegments(segments []trace.Segment, t *trace.Trace) error {
	live := t.Initial // by address
	for i := range segments {
		s := &segments[i]
		end := s.Addr + uint64(s.Size)
		n := 0
		for n < len(live) && live[n].Addr < end {
			n++
		}
		if n > 0 && live[0].Addr < s.Addr {
			return fmt.Errorf("allocation at %#x is in no segment", live[0].Addr)
		}
		if err := fillSegment(s, live[:n], &t.Settings); err != nil {
			return err
		}
		live = live[n:]
	}
	if len(live) > 0 {
		return fmt.Errorf("allocation at %#x is in no segment", live[0].Addr)
	}
	return nil
}

func fillSegment(s *trace.Segment, live []trace.Block, settings *trace.Settings) error {
	at, end := s.Addr, s.Addr+uint64(s.Size)
	free := func(to uint64) {
		if to > at {
			s.Blocks = append(s.Blocks, trace.Block{Addr: at, Size: int64(to - at), Requested: unknownRequest, ID: trace.None})
		}
	}
	for i, b := range live {
		free(b.Addr)
		next := end
		if i+1 < len(live) {
			next = live[i+1].Addr
		}
		if b.Size == 0 {
			b.Size = initialSize(s, b, int64(next-b.Addr), settings)
		}
		if b.Addr < at || b.Addr+uint64(b.Size) > next {
			return fmt.Errorf("allocation of %d bytes at %#x overlaps another", b.Requested, b.Addr)
		}
		s.Blocks = append(s.Blocks, b)
		at = b.Addr + uint64(b.Size)
	}
	free(end)
	return nil
}

// initialSize is the size of a block if only the request is known. In
// the large pool no free block is as small as 1 MiB (R7), so a gap up to that
// belongs to the block before it; and segments from max_split_size on are
// always one block (R6, R7).
func initialSize(s *trace.Segment, b trace.Block, space int64, settings *trace.Settings) int64 {
	size := roundSize(b.Requested, settings)
	if s.Small || s.Expandable {
		return size
	}
	oversize := settings.MaxSplitSize > 0 && s.Size >= settings.MaxSplitSize
	if oversize || space-size <= smallSize {
		return space
	}
	return size
}
