package allocator

import (
	"cmp"
	"slices"

	"memorymark/internal/trace"
)

// pool holds the free blocks of one size class. A free block serves only its
// own stream, so each stream has its own sets.
type blockPool struct {
	isSmall           bool
	id                trace.PoolID
	streams           map[uint16]*streamBlocks // of the streams that ever had something in the pool
	latest            *streamBlocks            // the one that was asked for last
	releasable        []blockIndex             // free blocks of which something can be returned to the driver, in no order
	getFreeBlockCalls int64                    // counted only while garbage is collected (R14)
}

// streamBlocks is what a pool has for one stream.
type streamBlocks struct {
	stream   uint16
	blocks   freeSet // mapped and free
	unmapped freeSet // address space of expandable segments, by address alone
}

func newBlockPool(id trace.PoolID, small bool) *blockPool {
	return &blockPool{id: id, isSmall: small, streams: make(map[uint16]*streamBlocks)}
}

// of returns what the pool has for a stream. Recordings with thousands of
// streams and of pools exist, as files that were made to harm; a pool usually has
// one stream.
func (p *blockPool) of(stream uint16) *streamBlocks {
	if p.latest != nil && p.latest.stream == stream {
		return p.latest
	}
	s := p.streams[stream]
	if s == nil {
		s = &streamBlocks{stream: stream}
		p.streams[stream] = s
	}
	p.latest = s
	return s
}

func (a *cachingAllocator) setStreams(handles []uint64) {
	if len(handles) == 0 {
		handles = []uint64{0}
	}
	order := make([]uint16, len(handles))
	for i := range handles {
		order[i] = uint16(i)
	}
	slices.SortFunc(order, func(x, y uint16) int { return cmp.Compare(handles[x], handles[y]) })
	a.streamRank = make([]uint16, len(handles))
	for rank, stream := range order {
		a.streamRank[stream] = uint16(rank)
	}
}

func (a *cachingAllocator) addPools(id trace.PoolID) int {
	n := len(a.pools)
	a.private[id] = n
	a.pools = append(a.pools, newBlockPool(id, true), newBlockPool(id, false))
	return n
}

// getPool is R2.
func (a *cachingAllocator) getPool(id trace.PoolID, size int64) *blockPool {
	return a.poolOf(id, size <= smallSize)
}

func (a *cachingAllocator) poolOf(id trace.PoolID, small bool) *blockPool {
	n := 0
	if id != (trace.PoolID{}) {
		var ok bool
		if n, ok = a.private[id]; !ok {
			n = a.addPools(id)
		}
	}
	if !small {
		n++
	}
	return a.pools[n]
}

// getFreeBlock takes the free block that suits best out of its set (R4–R6).
func (a *cachingAllocator) getFreeBlock(p *blockPool, stream uint16, size int64) blockIndex {
	set := &p.of(stream).blocks
	at, ok := a.bestFit(set, size)
	if !ok {
		return noBlock
	}
	h := set.get(at).block
	set.remove(at)
	a.removeReleasable(h)
	return h
}

// bestFit finds the free block that suits best.
func (a *cachingAllocator) bestFit(set *freeSet, size int64) (at position, ok bool) {
	at = set.lowerBound(size, 0)
	if !set.has(at) {
		return at, false
	}
	if a.blocks.at(set.get(at).block).expandable != nil {
		if at = a.settleExpandable(set, at); !set.has(at) {
			return at, false
		}
	}
	key := set.get(at)
	if size < a.maxSplit {
		return at, key.size < a.maxSplit
	}
	return at, key.size < size+maxNonSplitRounding
}

// settleExpandable moves from the first block that fits to the one to use
// where expandable segments are about (R5).
func (a *cachingAllocator) settleExpandable(set *freeSet, at position) position {
	if !a.settings.ExpandableSegments {
		// The setting was switched off at run time: skip their blocks.
		for set.has(at) && a.blocks.at(set.get(at).block).expandable != nil {
			a.work++
			at = set.next(at)
		}
		return at
	}
	for a.blocks.at(set.get(at).block).expandable != nil {
		a.work++
		next := set.next(at)
		if !set.has(next) || a.sizeWithUnmapped(set.get(next).block) >= a.sizeWithUnmapped(set.get(at).block) {
			break
		}
		at = next
	}
	return at
}

// sizeWithUnmapped is a free block's size with the unmapped space behind it.
func (a *cachingAllocator) sizeWithUnmapped(h blockIndex) int64 {
	b := a.blocks.at(h)
	size := b.size
	if b.next != noBlock {
		if n := a.blocks.at(b.next); !n.mapped {
			size += n.size
		}
	}
	return size
}

func (a *cachingAllocator) insertFree(h blockIndex) {
	b := a.blocks.at(h)
	p := b.pool
	b.gcCountBase = p.getFreeBlockCalls
	p.of(b.stream).blocks.insert(freeKey{b.size, b.addr, h})
	if b.isReleasable() {
		b.index = int32(len(p.releasable))
		p.releasable = append(p.releasable, h)
	}
}

func (a *cachingAllocator) removeFree(h blockIndex) {
	b := a.blocks.at(h)
	set := &b.pool.of(b.stream).blocks
	set.remove(set.lowerBound(b.size, b.addr))
	a.removeReleasable(h)
}

// removeReleasable takes a block that is no longer free from the releasable ones,
// if it was one.
func (a *cachingAllocator) removeReleasable(h blockIndex) {
	b := a.blocks.at(h)
	if b.isReleasable() {
		whole := b.pool.releasable
		last := whole[len(whole)-1]
		whole[b.index] = last
		a.blocks.at(last).index = b.index
		b.pool.releasable = whole[:len(whole)-1]
	}
}

// releasableBlocks returns the free blocks of a pool that can be returned to the driver,
// in whole or in part, in the order in which PyTorch walks over all free blocks:
// by stream, size and address.
func (a *cachingAllocator) releasableBlocks(p *blockPool) []blockIndex {
	out := slices.Clone(p.releasable)
	a.work += int64(len(out))
	slices.SortFunc(out, func(x, y blockIndex) int {
		b, c := a.blocks.at(x), a.blocks.at(y)
		return cmp.Or(cmp.Compare(a.streamRank[b.stream], a.streamRank[c.stream]), cmp.Compare(b.size, c.size), cmp.Compare(b.addr, c.addr))
	})
	return out
}

func (p *blockPool) insertUnmapped(stream uint16, addr uint64, h blockIndex) {
	p.of(stream).unmapped.insert(freeKey{addr: addr, block: h})
}

func (p *blockPool) removeUnmapped(stream uint16, addr uint64) {
	set := &p.of(stream).unmapped
	if at := set.lowerBound(0, addr); set.has(at) && set.get(at).addr == addr {
		set.remove(at)
	}
}
