package allocator

import (
	"cmp"
	"slices"

	"memorymark/internal/trace"
)

// pool holds the free blocks of one size class. A free block serves only its
// own stream, so each stream has its own sets.
type pool struct {
	small    bool
	id       trace.PoolID
	free     []freeSet    // by stream index, mapped and free
	unmapped [][]roomSpan // by stream index, by address: room of expandable segments
	searches int64        // counted only while garbage is collected (R14)
}

// roomSpan is a block of reserved address space without memory.
type roomSpan struct {
	addr  uint64
	block Handle
}

func newPool(id trace.PoolID, small bool, streams int) *pool {
	return &pool{id: id, small: small, free: make([]freeSet, streams), unmapped: make([][]roomSpan, streams)}
}

func (a *Allocator) setStreams(handles []uint64) {
	if len(handles) == 0 {
		handles = []uint64{0}
	}
	a.streamOrder = make([]uint16, len(handles))
	for i := range handles {
		a.streamOrder[i] = uint16(i)
	}
	slices.SortFunc(a.streamOrder, func(x, y uint16) int { return cmp.Compare(handles[x], handles[y]) })
}

func (a *Allocator) addPools(id trace.PoolID) int {
	n := len(a.pools)
	a.private[id] = n
	a.pools = append(a.pools, newPool(id, true, len(a.streamOrder)), newPool(id, false, len(a.streamOrder)))
	return n
}

// poolFor is R2.
func (a *Allocator) poolFor(id trace.PoolID, size int64) *pool {
	return a.poolOf(id, size <= smallLimit)
}

func (a *Allocator) poolOf(id trace.PoolID, small bool) *pool {
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

// search takes the free block that suits best out of its set (R4–R6).
func (a *Allocator) search(p *pool, stream uint16, size int64) Handle {
	set := &p.free[stream]
	at := set.lowerBound(size, 0)
	if !set.has(at) {
		return none
	}
	if a.blocks.at(set.get(at).block).room != nil {
		if at = a.settleExpandable(set, at); !set.has(at) {
			return none
		}
	}
	key := set.get(at)
	if size < a.maxSplit && key.size >= a.maxSplit {
		return none
	}
	if size >= a.maxSplit && key.size >= size+nonSplitRound {
		return none
	}
	set.remove(at)
	return key.block
}

// settleExpandable moves from the first block that fits to the one to use
// where expandable segments are about (R5).
func (a *Allocator) settleExpandable(set *freeSet, at place) place {
	if !a.settings.ExpandableSegments {
		// The setting was switched off at run time: skip their blocks.
		for set.has(at) && a.blocks.at(set.get(at).block).room != nil {
			at = set.next(at)
		}
		return at
	}
	for a.blocks.at(set.get(at).block).room != nil {
		next := set.next(at)
		if !set.has(next) || a.sizeWithRoom(set.get(next).block) >= a.sizeWithRoom(set.get(at).block) {
			break
		}
		at = next
	}
	return at
}

// sizeWithRoom is a free block's size with the unmapped room behind it.
func (a *Allocator) sizeWithRoom(h Handle) int64 {
	b := a.blocks.at(h)
	size := b.size
	if b.next != none {
		if n := a.blocks.at(b.next); !n.mapped {
			size += n.size
		}
	}
	return size
}

func (a *Allocator) insertFree(h Handle) {
	b := a.blocks.at(h)
	b.age = b.pool.searches
	b.pool.free[b.stream].insert(freeKey{b.size, b.addr, h})
}

func (a *Allocator) removeFree(h Handle) {
	b := a.blocks.at(h)
	set := &b.pool.free[b.stream]
	set.remove(set.lowerBound(b.size, b.addr))
}

func (p *pool) insertUnmapped(stream uint16, s roomSpan) {
	list := p.unmapped[stream]
	i, _ := slices.BinarySearchFunc(list, s.addr, func(x roomSpan, addr uint64) int { return cmp.Compare(x.addr, addr) })
	p.unmapped[stream] = slices.Insert(list, i, s)
}

func (p *pool) removeUnmapped(stream uint16, addr uint64) {
	list := p.unmapped[stream]
	i, ok := slices.BinarySearchFunc(list, addr, func(x roomSpan, addr uint64) int { return cmp.Compare(x.addr, addr) })
	if ok {
		p.unmapped[stream] = slices.Delete(list, i, i+1)
	}
}
