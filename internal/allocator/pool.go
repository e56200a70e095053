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
	stocks   map[uint16]*stock // of the streams that ever had something in the pool
	latest   *stock            // the one that was asked for last
	whole    []Handle          // free blocks of which something can be returned to the driver, in no order
	searches int64             // counted only while garbage is collected (R14)
}

// stock is what a pool has for one stream.
type stock struct {
	stream   uint16
	free     freeSet // mapped and free
	unmapped freeSet // room of expandable segments, by address alone
}

func newPool(id trace.PoolID, small bool) *pool {
	return &pool{id: id, small: small, stocks: make(map[uint16]*stock)}
}

// of returns what the pool has for a stream. Recordings with thousands of
// streams and of pools exist, as files that were made to harm; most pools are
// used by one stream.
func (p *pool) of(stream uint16) *stock {
	if p.latest != nil && p.latest.stream == stream {
		return p.latest
	}
	s := p.stocks[stream]
	if s == nil {
		s = &stock{stream: stream}
		p.stocks[stream] = s
	}
	p.latest = s
	return s
}

func (a *Allocator) setStreams(handles []uint64) {
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

func (a *Allocator) addPools(id trace.PoolID) int {
	n := len(a.pools)
	a.private[id] = n
	a.pools = append(a.pools, newPool(id, true), newPool(id, false))
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
	set := &p.of(stream).free
	at, ok := a.bestFit(set, size)
	if !ok {
		return none
	}
	h := set.get(at).block
	set.remove(at)
	a.notReturnable(h)
	return h
}

// bestFit finds the free block that suits best.
func (a *Allocator) bestFit(set *freeSet, size int64) (at place, ok bool) {
	at = set.lowerBound(size, 0)
	if !set.has(at) {
		return at, false
	}
	if a.blocks.at(set.get(at).block).room != nil {
		if at = a.settleExpandable(set, at); !set.has(at) {
			return at, false
		}
	}
	key := set.get(at)
	if size < a.maxSplit {
		return at, key.size < a.maxSplit
	}
	return at, key.size < size+nonSplitRound
}

// settleExpandable moves from the first block that fits to the one to use
// where expandable segments are about (R5).
func (a *Allocator) settleExpandable(set *freeSet, at place) place {
	if !a.settings.ExpandableSegments {
		// The setting was switched off at run time: skip their blocks.
		for set.has(at) && a.blocks.at(set.get(at).block).room != nil {
			a.work++
			at = set.next(at)
		}
		return at
	}
	for a.blocks.at(set.get(at).block).room != nil {
		a.work++
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
	p := b.pool
	b.age = p.searches
	p.of(b.stream).free.insert(freeKey{b.size, b.addr, h})
	if b.isReturnable() {
		b.place = int32(len(p.whole))
		p.whole = append(p.whole, h)
	}
}

func (a *Allocator) removeFree(h Handle) {
	b := a.blocks.at(h)
	set := &b.pool.of(b.stream).free
	set.remove(set.lowerBound(b.size, b.addr))
	a.notReturnable(h)
}

// notReturnable takes a block that is no longer free from the returnable ones,
// if it was one.
func (a *Allocator) notReturnable(h Handle) {
	b := a.blocks.at(h)
	if b.isReturnable() {
		whole := b.pool.whole
		last := whole[len(whole)-1]
		whole[b.place] = last
		a.blocks.at(last).place = b.place
		b.pool.whole = whole[:len(whole)-1]
	}
}

// returnable returns the free blocks of a pool that can be returned to the driver,
// in whole or in part, in the order in which PyTorch walks over all free blocks:
// by stream, size and address.
func (a *Allocator) returnable(p *pool) []Handle {
	out := slices.Clone(p.whole)
	a.work += int64(len(out))
	slices.SortFunc(out, func(x, y Handle) int {
		b, c := a.blocks.at(x), a.blocks.at(y)
		return cmp.Or(cmp.Compare(a.streamRank[b.stream], a.streamRank[c.stream]), cmp.Compare(b.size, c.size), cmp.Compare(b.addr, c.addr))
	})
	return out
}

func (p *pool) insertUnmapped(stream uint16, addr uint64, h Handle) {
	p.of(stream).unmapped.insert(freeKey{addr: addr, block: h})
}

func (p *pool) removeUnmapped(stream uint16, addr uint64) {
	set := &p.of(stream).unmapped
	if at := set.lowerBound(0, addr); set.has(at) && set.get(at).addr == addr {
		set.remove(at)
	}
}
