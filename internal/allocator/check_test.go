package allocator

import "fmt"

// check verifies the allocator's own books, which tests do after every step:
//
//   - Blocks form chains without gaps or overlaps, and point to each other.
//   - No two neighbours are both free (with the same backing): R9 merged them.
//   - Every free block is in its free set exactly once, and no other is.
//   - Every unmapped block is in its set.
//   - The statistics are the sums over the blocks.
func (a *cachingAllocator) check() error {
	var allocated, active, requested, reserved, splitBytes int64
	var free, unmapped int
	for i := range a.blocks.slots {
		h := blockIndex(i)
		b := a.blocks.at(h)
		if !b.used {
			continue
		}
		if err := a.checkNeighbours(h); err != nil {
			return err
		}
		if b.mapped {
			reserved += b.size
		} else {
			unmapped++
		}
		if b.allocated {
			allocated += b.size
		}
		if b.allocated || b.pending {
			active += b.size
			requested += b.requested
			continue
		}
		if !b.mapped {
			continue
		}
		free++
		if b.expandable == nil && (b.prev != noBlock || b.next != noBlock) {
			splitBytes += b.size
		}
		set := &b.pool.of(b.stream).blocks
		if at := set.lowerBound(b.size, b.addr); !set.has(at) || set.get(at).block != h {
			return fmt.Errorf("free block %#x of %d bytes is not in its set", b.addr, b.size)
		}
	}
	if err := a.checkSets(free, unmapped); err != nil {
		return err
	}
	for _, c := range []struct {
		name       string
		stat, want int64
	}{
		{"allocated", a.stats.AllocatedBytes[All].Current, allocated},
		{"active", a.stats.ActiveBytes[All].Current, active},
		{"requested", a.stats.RequestedBytes[All].Current, requested},
		{"reserved", a.stats.ReservedBytes[All].Current, reserved},
		{"inactive split", a.stats.InactiveSplitBytes[All].Current, splitBytes},
	} {
		if c.stat != c.want {
			return fmt.Errorf("%s bytes are %d, the blocks say %d", c.name, c.stat, c.want)
		}
	}
	return nil
}

func (a *cachingAllocator) checkNeighbours(h blockIndex) error {
	b := a.blocks.at(h)
	if b.next == noBlock {
		return nil
	}
	n := a.blocks.at(b.next)
	if !n.used || n.prev != h || n.addr != b.addr+uint64(b.size) || n.pool != b.pool || n.expandable != b.expandable {
		return fmt.Errorf("block %#x of %d bytes and its neighbour at %#x do not join", b.addr, b.size, n.addr)
	}
	if a.allocatable(h) && a.allocatable(b.next) && b.mapped == n.mapped {
		return fmt.Errorf("free blocks %#x and %#x were not merged", b.addr, n.addr)
	}
	return nil
}

func (a *cachingAllocator) checkSets(free, unmapped int) error {
	for _, p := range a.pools {
		for _, s := range p.streams {
			free -= s.blocks.len()
			unmapped -= s.unmapped.len()
		}
	}
	if free != 0 || unmapped != 0 {
		return fmt.Errorf("the sets hold %d free and %d unmapped blocks too few", free, unmapped)
	}
	return nil
}

func (s *freeSet) len() int {
	n := 0
	for _, run := range s.runs {
		n += len(run)
	}
	return n
}
